# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Tuple

import torch
from executorch.backends.arm.test.tester.test_pipeline import TosaPipelineINT

input_t = Tuple[torch.Tensor]


class FrozenEncoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y = torch.relu(self.norm(self.conv(x)))
        return y * 2


def test_no_grad_tosa_INT():
    inputs = (torch.randn(1, 3, 8, 8),)
    pipeline = TosaPipelineINT[input_t](FrozenEncoder().eval(), inputs, [])
    pipeline.run()
