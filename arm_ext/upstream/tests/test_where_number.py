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

input_t = Tuple[torch.Tensor, torch.Tensor]


class WhereNumber(torch.nn.Module):
    test_data = {
        "rank2": lambda: (torch.randn(6, 8), torch.rand(6, 8) > 0.3),
        "broadcast": lambda: (torch.randn(2, 6, 6), torch.rand(1, 6, 6) > 0.3),
    }

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        # Not minus infinity: limited to -256, it leaves scores few steps of int8.
        masked = torch.where(mask, x * 2, -8.0)
        return torch.softmax(masked, -1)


@common.parametrize("test_data", WhereNumber.test_data)
def test_where_number_tosa_INT(test_data):
    pipeline = TosaPipelineINT[input_t](WhereNumber(), test_data(), [])
    pipeline.run()


@common.XfailIfNoCorstone320
@common.parametrize("test_data", WhereNumber.test_data)
def test_where_number_u85_INT(test_data):
    pipeline = EthosU85PipelineINT[input_t](WhereNumber(), test_data(), [])
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", WhereNumber.test_data)
def test_where_number_vgf_quant(test_data):
    pipeline = VgfPipeline[input_t](WhereNumber(), test_data(), [], quantize=True)
    pipeline.run()
