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


class Triu(torch.nn.Module):
    test_data = {
        "rank2": lambda: torch.randn(6, 8),
        "rank4": lambda: torch.randn(1, 3, 5, 5),
    }

    def __init__(self, diagonal: int = 0) -> None:
        super().__init__()
        self.diagonal = diagonal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.triu(x, self.diagonal)


@common.parametrize("test_data", Triu.test_data)
def test_triu_tosa_INT(test_data):
    pipeline = TosaPipelineINT[input_t](Triu(), (test_data(),), [])
    pipeline.run()


@common.XfailIfNoCorstone320
@common.parametrize("test_data", Triu.test_data)
def test_triu_u85_INT(test_data):
    pipeline = EthosU85PipelineINT[input_t](Triu(), (test_data(),), [])
    pipeline.run()


@common.parametrize("test_data", Triu.test_data)
def test_triu_above_tosa_INT(test_data):
    pipeline = TosaPipelineINT[input_t](Triu(1), (test_data(),), [])
    pipeline.run()


@common.XfailIfNoCorstone320
@common.parametrize("test_data", Triu.test_data)
def test_triu_above_u85_INT(test_data):
    pipeline = EthosU85PipelineINT[input_t](Triu(1), (test_data(),), [])
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", Triu.test_data)
def test_triu_vgf_quant(test_data):
    pipeline = VgfPipeline[input_t](Triu(-1), (test_data(),), [], quantize=True)
    pipeline.run()
