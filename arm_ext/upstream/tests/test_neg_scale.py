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
)

input_t = Tuple[torch.Tensor, torch.Tensor]


class NegBesideCat(torch.nn.Module):
    """cat gives the input of neg other qparams than its output has."""

    test_data = {
        "negative": lambda: (torch.linspace(-5.0, 0.2, 16), torch.linspace(0, 20, 16)),
        "positive": lambda: (torch.linspace(0.0, 4.0, 16), torch.linspace(-9, 20, 16)),
    }

    def forward(self, x: torch.Tensor, y: torch.Tensor):
        return -x, torch.cat([x, y])


@common.parametrize("test_data", NegBesideCat.test_data)
def test_neg_scale_tosa_INT(test_data):
    pipeline = TosaPipelineINT[input_t](NegBesideCat(), test_data(), [])
    pipeline.run()


@common.XfailIfNoCorstone300
@common.parametrize("test_data", NegBesideCat.test_data)
def test_neg_scale_u55_INT(test_data):
    pipeline = EthosU55PipelineINT[input_t](NegBesideCat(), test_data(), [])
    pipeline.run()


@common.XfailIfNoCorstone320
@common.parametrize("test_data", NegBesideCat.test_data)
def test_neg_scale_u85_INT(test_data):
    pipeline = EthosU85PipelineINT[input_t](NegBesideCat(), test_data(), [])
    pipeline.run()
