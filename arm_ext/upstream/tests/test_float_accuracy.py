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


class Elementwise(torch.nn.Module):
    test_data = {
        "asinh": lambda: (torch.asinh, torch.tensor([-5000.0, -20.0, 0.0, 3.0, 1e20])),
        "log1p": lambda: (torch.log1p, torch.tensor([-0.999, -0.5, 0.0, 1e-8, 7.0])),
        "log_softmax": lambda: (
            lambda x: torch.log_softmax(x, -1),
            torch.tensor([-300.0, -100.0, 0.0, 5.0]),
        ),
        "round": lambda: (torch.round, torch.arange(-3.0, 3.0, 0.25)),
    }

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@common.parametrize("test_data", Elementwise.test_data)
def test_float_accuracy_tosa_FP(test_data):
    function, x = test_data()
    pipeline = TosaPipelineFP[input_t](Elementwise(function), (x,), [])
    pipeline.run()


@common.SkipIfNoModelConverter
@common.parametrize("test_data", Elementwise.test_data)
def test_float_accuracy_vgf_no_quant(test_data):
    function, x = test_data()
    pipeline = VgfPipeline[input_t](Elementwise(function), (x,), [], quantize=False)
    pipeline.run()
