# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Tuple

import torch
from executorch.backends.arm.test import common
from executorch.backends.arm.test.tester.test_pipeline import (
    TosaPipelineFP,
    TosaPipelineINT,
)

input_t = Tuple[torch.Tensor]
delegates = {"torch.ops.higher_order.executorch_call_delegate": 2}


class SharedSplit(torch.nn.Module):
    """atan2 is in no list of the backend: one half leaves the delegate for it."""

    test_data = {"rank4": lambda: (torch.randn(1, 4, 4, 4),)}

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(4, 8, 1)
        self.second = torch.nn.Conv2d(4, 4, 1)

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        left, right = self.first(x).split(4, 1)
        flat = right.flatten(2)
        return self.second(left).flatten(2) + torch.atan2(flat, flat + 1), right


class ShapeOnly(torch.nn.Module):
    """The delegate reads the shape of what atan2 makes, and not its values."""

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        y = torch.atan2(x, x + 1)
        return torch.full_like(y, 2.0) * x + 1, y


@common.parametrize("test_data", SharedSplit.test_data)
def test_quantize_where_made_tosa_INT(test_data):
    pipeline = TosaPipelineINT[input_t](SharedSplit(), test_data(), [])
    pipeline.change_args("check_count.exir", delegates)
    pipeline.run()


@common.parametrize("test_data", SharedSplit.test_data)
def test_unread_input_tosa_FP(test_data):
    pipeline = TosaPipelineFP[input_t](ShapeOnly(), test_data(), [])
    pipeline.change_args("check_count.exir", delegates)
    pipeline.run()
