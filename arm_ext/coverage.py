# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What was delegated in a lowered program, what was not, and why."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from arm_ext.partitioner.source import Source, source_of
from arm_ext.patcher import Patcher
from arm_ext.verify import exported_program_of
from torch.fx import GraphModule, Node
from torch.fx.passes.operator_support import create_op_support, OperatorSupportBase

__all__ = ["Coverage", "coverage", "left_op", "LeftOp", "op_name", "reject_reasons"]

_META_KEY = "arm_ext.reject_reasons"
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
    reasons = node.meta.get(_META_KEY, ())
    return LeftOp(node.name, op_name(node), reasons, source_of(node))


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


@contextmanager
def reject_reasons() -> Iterator[None]:
    """Keep every reason for which a partitioner rejects a node.

    Stock's reporter keeps the first reason a node and throws it away with the
    partitioner's other state. Inside the ``with`` block each check of the
    support chain runs, also behind the first that says no, and the reasons stay
    on the rejected nodes, where :func:`coverage` finds them::

        with reject_reasons():
            edge = to_edge_transform_and_lower(program, partitioner=[...])
        print(coverage(edge).left)

    What is delegated does not change. Not for several threads at once.

    """
    patcher = Patcher()
    try:
        _observe(patcher)
        yield
    finally:
        patcher.undo()


def _observe(patcher: Patcher) -> None:
    rejects: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    def report_reject(wrapped: Any, reporter: Any, args: tuple, kwargs: dict) -> None:
        node, reason = _node_and_reason(*args, **kwargs)
        rejects.setdefault(reporter, {}).setdefault(node, []).append(reason)
        wrapped(node, reason)

    def tag_module(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
        # Only this reporter speaks for the partitioner; others try out nodes.
        tags = wrapped(*args, **kwargs)
        for node, reasons in rejects.get(_reporter(*args, **kwargs), {}).items():
            known = node.meta.get(_META_KEY, ())
            node.meta[_META_KEY] = tuple(dict.fromkeys((*known, *reasons)))
        return tags

    patcher.wrap(
        "executorch.exir.backend.utils:WhyNoPartitionReporter.report_reject",
        report_reject,
        parameters=("self", "node", "reason"),
    )
    patcher.wrap(
        "executorch.backends.arm.tosa.partitioner:TOSAPartitioner._tag_module",
        tag_module,
        parameters=(
            "self",
            "module",
            "containing_program",
            "reporter",
            "tag_iterator",
        ),
    )
    patcher.set(
        "executorch.backends.arm.operator_support.tosa_supported_operators:chain",
        _chain_without_shortcut,
        everywhere=False,
    )


def _node_and_reason(node: Node, reason: str) -> tuple[Node, str]:
    return node, reason


def _reporter(
    module: Any, containing_program: Any, reporter: Any, tag_iterator: Any = None
) -> Any:
    return reporter


def _chain_without_shortcut(*checks: OperatorSupportBase) -> OperatorSupportBase:
    """``torch.fx``'s ``chain``, but every check runs and so gives its reason."""

    def is_node_supported(submodules: Any, node: Node) -> bool:
        supported = True
        for check in checks:
            supported &= _answer(check.is_node_supported, submodules, node, supported)
        return supported

    return create_op_support(is_node_supported)


def _answer(
    check: Callable[..., bool], submodules: Any, node: Node, supported: bool
) -> bool:
    try:
        return check(submodules, node)
    except Exception:
        # A check may rely on those before it; behind a "no" its failure means
        # nothing, and in stock's chain it would not have run.
        if supported:
            raise
        return False
