# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What was delegated in a lowered program, what was not, and why."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from arm_ext.fixes._reject_reasons import line_of, reasons_of, reject_reasons
from arm_ext.partitioner.source import Source
from arm_ext.verify import exported_program_of
from torch.fx import GraphModule, Node

__all__ = ["Coverage", "coverage", "left_op", "LeftOp", "op_name", "reject_reasons"]

# What a delegate boundary or the memory plan needs was not left on the CPU.
_BOUNDARY = ("executorch_call_delegate", "getitem", "alloc")


@dataclass(frozen=True)
class LeftOp:
    """An op that was left on the CPU.

    Attributes:
        node (str): Name of the node in the lowered graph.
        op (str): Name of the op, ``"aten.argmin.default"``.
        reasons (tuple[str, ...]): Why the partitioners rejected the node, in the
            order in which their checks ran. Empty when the program was not
            lowered under :func:`reject_reasons`, or when no partitioner said.
        source (Source | None): The line of the model, where export kept it.

    """

    node: str
    op: str
    reasons: tuple[str, ...] = ()
    source: Source | None = None


@dataclass(frozen=True)
class Coverage:
    """Delegates and left-over ops of one lowered method.

    Attributes:
        delegates (int): Number of delegate calls, those in branches and loop
            bodies included.
        left (tuple[LeftOp, ...]): One entry a node left on the CPU, in graph
            order, Q/DQ included.

    """

    delegates: int
    left: tuple[LeftOp, ...]

    @property
    def cpu_ops(self) -> tuple[str, ...]:
        """The op names of ``left``."""
        return tuple(left.op for left in self.left)

    @property
    def compute_left(self) -> tuple[LeftOp, ...]:
        """``left`` without Q/DQ at the edges of the delegates."""
        return tuple(left for left in self.left if "quantize_per" not in left.op)

    @property
    def compute_ops(self) -> tuple[str, ...]:
        """The op names of ``compute_left``."""
        return tuple(left.op for left in self.compute_left)


def coverage(program: Any, method: str = "forward") -> Coverage:
    """Return the :class:`Coverage` of an edge program manager or program."""
    delegates = 0
    left = []
    for node in _calls(exported_program_of(program, method).graph_module):
        name = op_name(node)
        delegates += name == "executorch_call_delegate"
        if name not in _BOUNDARY:
            left.append(left_op(node))
    return Coverage(delegates, tuple(left))


def left_op(node: Node) -> LeftOp:
    """Return what is known about a node that is left on the CPU."""
    return LeftOp(node.name, op_name(node), reasons_of(node), line_of(node))


def op_name(node: Node) -> str:
    """Return the name of a ``call_function`` node's op."""
    return getattr(node.target, "__name__", str(node.target))


def _calls(module: GraphModule) -> Iterator[Node]:
    """Yield the ``call_function`` nodes of a graph, its branches and bodies."""
    for node in module.graph.nodes:
        if node.op == "call_function":
            yield node
        elif node.op == "get_attr":
            branch = getattr(module, node.target, None)
            if isinstance(branch, GraphModule):
                yield from _calls(branch)
