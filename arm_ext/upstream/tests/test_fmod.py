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

aten_op = "torch.ops.aten.fmod.Scalar"
exir_op = "executorch_exir_dialects_edge__ops_aten_fmod_Scalar"


class Fmod(torch.nn.Module):
    test_data = {
        "rank1": lambda: torch.linspace(-9, 9, 65),
        "rank4": lambda: 20 * torch.randn(1, 3, 4, 5),
    }

    def __init__(self, divisor: float | int = 2.5) -> None:
        super().__init__()
        self.divisor = divisor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fmod(x, self.divisor)


integers = {"int32": lambda: torch.arange(-40, 40, dtype=torch.int32)}


@common.parametrize("test_data", Fmod.test_data)
def test_fmod_tosa_FP(test_data):
    pipeline = TosaPipelineFP[input_t](Fmod(), (test_data(),), aten_op, exir_op)
    pipeline.run()


@common.parametrize("test_data", Fmod.test_data)
def test_fmod_negative_divisor_tosa_FP(test_data):
    pipeline = TosaPipelineFP[input_t](Fmod(-0.75), (test_data(),), aten_op, exir_op)
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", Fmod.test_data)
def test_fmod_vgf_no_quant(test_data):
    pipeline = VgfPipeline[input_t](Fmod(), (test_data(),), aten_op, quantize=False)
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", integers)
def test_fmod_integer_vgf_no_quant(test_data):
    pipeline = VgfPipeline[input_t](Fmod(7), (test_data(),), aten_op, quantize=False)
    pipeline.run()
