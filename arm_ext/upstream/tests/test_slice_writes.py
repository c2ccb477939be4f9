# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Tuple

import torch
from executorch.backends.arm.test import common
from executorch.backends.arm.test.tester.test_pipeline import (
    EthosU85PipelineINT,
    TosaPipelineINT,
    VgfPipeline,
)

input_t = Tuple[torch.Tensor]


class SliceWrites(torch.nn.Module):
    """The halves of a rotary embedding, written one by one."""

    test_data = {
        "rank2": lambda: (torch.randn(6, 8),),
        "rank3": lambda: (torch.randn(2, 6, 8),),
    }

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        y[..., :4] = x[..., :4] * 0.5 - x[..., 4:]
        y[..., 4:] = x[..., 4:] * 0.5 + x[..., :4]
        return y


@common.parametrize("test_data", SliceWrites.test_data)
def test_slice_writes_tosa_INT(test_data):
    pipeline = TosaPipelineINT[input_t](SliceWrites(), test_data(), [])
    pipeline.run()


@common.XfailIfNoCorstone320
@common.parametrize("test_data", SliceWrites.test_data)
def test_slice_writes_u85_INT(test_data):
    pipeline = EthosU85PipelineINT[input_t](SliceWrites(), test_data(), [])
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", SliceWrites.test_data)
def test_slice_writes_vgf_quant(test_data):
    pipeline = VgfPipeline[input_t](SliceWrites(), test_data(), [], quantize=True)
    pipeline.run()
