# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The reject report: what ``partition()`` leaves on the CPU, and why."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence

from arm_ext.lowering.delegation_tags import TAG
from arm_ext.partitioner.source import source_of
from torch.export import ExportedProgram
from torch.fx import Node

# Some reasons hold the whole schema of an op; its name says as much.
_SCHEMA = re.compile(r"<EdgeOpOverload: (\S+)>: schema = .*? -> (?:Tensor|\([^)]*\))")


def without_schema(reason: str) -> str:
    """Return a reason that names an op where it had the op's schema."""
    return _SCHEMA.sub(r"\1", reason)


def reject_report(
    program: ExportedProgram, target: str, reasons_of: Callable[[Node], Sequence[str]]
) -> str:
    """Return the report as text, one paragraph an op.

    Args:
        program (ExportedProgram): An edge program after ``partition()``.
        target (str): What it was partitioned for.
        reasons_of (Callable[[Node], Sequence[str]]): Returns why a node was rejected.

    """
    ops = [node for node in program.graph.nodes if _is_op(node)]
    left = [node for node in ops if TAG not in node.meta]
    title = f"{target}: {len(ops) - len(left)} of {len(ops)} ops are delegated"
    return "\n\n".join([title, *(_paragraph(node, reasons_of(node)) for node in left)])


def _is_op(node: Node) -> bool:
    return node.op == "call_function" and node.target is not operator.getitem


def _paragraph(node: Node, reasons: Sequence[str]) -> str:
    return "\n    ".join(_lines(node, reasons))


def _lines(node: Node, reasons: Sequence[str]) -> Iterator[str]:
    yield f"{node.name} ({getattr(node.target, '__name__', node.target)})"
    if source := source_of(node):
        yield f"at {source}"
    yield from reasons or ("no check rejects it; it is alone, or at a border",)
