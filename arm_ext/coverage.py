# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What was delegated in a lowered program, and what was not."""

from dataclasses import dataclass
from typing import Any

from arm_ext.verify import exported_program_of

# What a delegate boundary needs is not an op that was left on the CPU.
_BOUNDARY = ("executorch_call_delegate", "getitem")


@dataclass(frozen=True)
class Coverage:
    """Delegates and left-over ops of one lowered method.

    Attributes:
        delegates (int): Number of delegate calls.
        cpu_ops (tuple[str, ...]): One entry a node left on the CPU, by op name
            (``"aten.argmin.default"``), in graph order, Q/DQ included.

    """

    delegates: int
    cpu_ops: tuple[str, ...]

    @property
    def compute_ops(self) -> tuple[str, ...]:
        """The left-over ops without Q/DQ at the edges of the delegates."""
        return tuple(op for op in self.cpu_ops if "quantize_per" not in op)


def coverage(program: Any, method: str = "forward") -> Coverage:
    """Return the :class:`Coverage` of an edge program manager or program."""
    delegates = 0
    cpu_ops = []
    for node in exported_program_of(program, method).graph.nodes:
        if node.op != "call_function":
            continue
        name = getattr(node.target, "__name__", str(node.target))
        delegates += name == "executorch_call_delegate"
        if name not in _BOUNDARY:
            cpu_ops.append(name)
    return Coverage(delegates, tuple(cpu_ops))
