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

test_data = {
    "special": lambda: torch.tensor([0.0, -0.0, 1.0, torch.nan, torch.inf, -torch.inf]),
    "rank4": lambda: torch.randn(1, 3, 4, 5) / torch.zeros(1, 3, 4, 5),
}


class IsNan(torch.nn.Module):
    aten_op = "torch.ops.aten.isnan.default"
    exir_op = "executorch_exir_dialects_edge__ops_aten_isnan_default"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.isnan(x)


class IsInf(torch.nn.Module):
    aten_op = "torch.ops.aten.isinf.default"
    exir_op = "executorch_exir_dialects_edge__ops_aten_isinf_default"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.isinf(x)


@common.parametrize("test_data", test_data)
def test_isnan_tosa_FP(test_data):
    pipeline = TosaPipelineFP[input_t](
        IsNan(), (test_data(),), IsNan.aten_op, IsNan.exir_op
    )
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", test_data)
def test_isnan_vgf_no_quant(test_data):
    pipeline = VgfPipeline[input_t](
        IsNan(), (test_data(),), IsNan.aten_op, quantize=False
    )
    pipeline.run()


@common.parametrize("test_data", test_data)
def test_isinf_tosa_FP(test_data):
    pipeline = TosaPipelineFP[input_t](
        IsInf(), (test_data(),), IsInf.aten_op, IsInf.exir_op
    )
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", test_data)
def test_isinf_vgf_no_quant(test_data):
    pipeline = VgfPipeline[input_t](
        IsInf(), (test_data(),), IsInf.aten_op, quantize=False
    )
    pipeline.run()
