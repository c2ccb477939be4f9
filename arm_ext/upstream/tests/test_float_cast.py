# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Tuple

import torch
from executorch.backends.arm.test import common
from executorch.backends.arm.test.tester.test_pipeline import (
    TosaPipelineFP,
    VgfPipeline,
)

input_t = Tuple[torch.Tensor]


class FloatCast(torch.nn.Module):
    test_data = {
        f"{source}_{result}".replace(
            "torch.", ""
        ): lambda source=source, result=result: (
            FloatCast(result),
            torch.tensor([-3.7, -2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 3.6]).to(source),
        )
        for source in (torch.float32, torch.float16)
        for result in (torch.int8, torch.int16, torch.int32)
    }

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + x).to(self.dtype)


@common.parametrize("test_data", FloatCast.test_data)
def test_float_cast_tosa_FP(test_data):
    model, x = test_data()
    pipeline = TosaPipelineFP[input_t](model, (x / 2,), [])
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", FloatCast.test_data)
def test_float_cast_vgf_no_quant(test_data):
    model, x = test_data()
    pipeline = VgfPipeline[input_t](model, (x / 2,), [], quantize=False)
    pipeline.run()
