# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Tuple

import torch
from executorch.backends.arm.test import common
from executorch.backends.arm.test.tester.test_pipeline import (
    EthosU55PipelineINT,
    EthosU85PipelineINT,
    TosaPipelineINT,
    VgfPipeline,
)

input_t = Tuple[torch.Tensor]


class Roll(torch.nn.Module):
    test_data = {
        "rank2": lambda: torch.randn(6, 8),
        "rank4": lambda: torch.randn(1, 3, 4, 5),
    }

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.roll(x, (2, -3), (-1, -2))


class RollFlat(Roll):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.roll(x, 5)


@common.parametrize("test_data", Roll.test_data)
def test_roll_tosa_INT(test_data):
    pipeline = TosaPipelineINT[input_t](Roll(), (test_data(),), [])
    pipeline.run()


@common.XfailIfNoCorstone300
@common.parametrize("test_data", Roll.test_data)
def test_roll_u55_INT(test_data):
    pipeline = EthosU55PipelineINT[input_t](Roll(), (test_data(),), [])
    pipeline.run()


@common.XfailIfNoCorstone320
@common.parametrize("test_data", Roll.test_data)
def test_roll_u85_INT(test_data):
    pipeline = EthosU85PipelineINT[input_t](Roll(), (test_data(),), [])
    pipeline.run()


@common.parametrize("test_data", Roll.test_data)
def test_roll_flat_tosa_INT(test_data):
    pipeline = TosaPipelineINT[input_t](RollFlat(), (test_data(),), [])
    pipeline.run()


@common.XfailIfNoCorstone320
@common.parametrize("test_data", Roll.test_data)
def test_roll_flat_u85_INT(test_data):
    pipeline = EthosU85PipelineINT[input_t](RollFlat(), (test_data(),), [])
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", Roll.test_data)
def test_roll_vgf_quant(test_data):
    pipeline = VgfPipeline[input_t](Roll(), (test_data(),), [], quantize=True)
    pipeline.run()
