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
    TosaPipelineFP,
    TosaPipelineINT,
    VgfPipeline,
)

input_t = Tuple[torch.Tensor]

aten_op = "torch.ops.aten.mish.default"
exir_op = "executorch_exir_dialects_edge__ops_aten_mish_default"


class Mish(torch.nn.Module):
    test_data = {
        "ones": lambda: torch.ones(5),
        "rank1": lambda: torch.linspace(-8, 8, 65),
        "rank3": lambda: torch.randn(3, 10, 20),
        "rank4_large": lambda: 50 * torch.randn(1, 3, 8, 9),
    }
    # Where softplus underflows, and where mish(x) == x.
    extremes = {"extremes": lambda: torch.tensor([-100.0, -87.0, -20.0, 0, 20, 1e30])}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.mish(x)


@common.parametrize("test_data", Mish.test_data | Mish.extremes)
def test_mish_tosa_FP(test_data):
    pipeline = TosaPipelineFP[input_t](Mish(), (test_data(),), aten_op, exir_op)
    pipeline.run()


@common.parametrize("test_data", Mish.test_data)
def test_mish_tosa_INT(test_data):
    pipeline = TosaPipelineINT[input_t](Mish(), (test_data(),), aten_op)
    pipeline.run()


@common.XfailIfNoCorstone300
@common.parametrize("test_data", Mish.test_data)
def test_mish_u55_INT(test_data):
    pipeline = EthosU55PipelineINT[input_t](Mish(), (test_data(),), aten_op)
    pipeline.run()


@common.XfailIfNoCorstone320
@common.parametrize("test_data", Mish.test_data)
def test_mish_u85_INT(test_data):
    pipeline = EthosU85PipelineINT[input_t](Mish(), (test_data(),), aten_op)
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", Mish.test_data)
def test_mish_vgf_no_quant(test_data):
    pipeline = VgfPipeline[input_t](Mish(), (test_data(),), aten_op, quantize=False)
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", Mish.test_data)
def test_mish_vgf_quant(test_data):
    pipeline = VgfPipeline[input_t](Mish(), (test_data(),), aten_op, quantize=True)
    pipeline.run()
