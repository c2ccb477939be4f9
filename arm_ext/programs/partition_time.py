# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The time that ``partition()`` takes."""

import torch
from arm_ext.programs._program import Expected, Flow, Gap

GAP = Gap(6, "partition", "partition() takes cubic time", fix="partitioner")
BLOCKS = 80


class Blocks(torch.nn.Module):
    """A chain of blocks with an op on a side branch that stays on the CPU.

    Args:
        count (int): Number of blocks.
        width (int): Features of the input, [1, width].

    """

    def __init__(self, count: int, width: int = 32) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(width, width) for _ in range(count)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            y = layer(x)
            x = y * torch.sigmoid(y) + torch.atan2(y, y + 2)
        return x


@GAP.program(
    "vgf",
    flow=Flow.PARTITION,
    expected=Expected(
        delegates=BLOCKS + 1,
        cpu_ops=("aten.atan2.default",) * BLOCKS,
        partition_seconds=0.5,
    ),
)
def eighty_blocks():
    """Eighty blocks with atan2 on a side branch; partitioned only."""
    return Blocks(BLOCKS).eval(), (torch.randn(1, 32),)
