# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Do not run decompositions on a program that has nothing left to decompose.

``ExportedProgram.run_decompositions`` traces the whole program again. A lowering
calls it three times with growing tables. If a program came out of such a trace,
and none of its ops is in the table, then another trace reproduces it, names and
all, and the program can be taken as it is.

"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Optional

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.fx import Node
from torch.utils._pytree import tree_leaves

# The programs that were traced inside the block.
_traced: ContextVar[Optional[list[ExportedProgram]]] = ContextVar(
    "arm_ext_traced", default=None
)

_PLAIN_INPUTS = (
    InputKind.USER_INPUT,
    InputKind.PARAMETER,
    InputKind.BUFFER,
    InputKind.CONSTANT_TENSOR,
)


@contextmanager
def skipping() -> Iterator[None]:
    """Skip decompositions inside the block where :func:`is_settled` allows it."""
    token = _traced.set([])
    try:
        yield
    finally:
        _traced.reset(token)


def run_decompositions(
    program: ExportedProgram,
    table: Optional[Collection[Any]],
    run: Callable[[], ExportedProgram],
) -> ExportedProgram:
    """Return ``run()``, or the program itself where that has nothing to do.

    Args:
        program (ExportedProgram): The program to decompose.
        table (Collection | None): The ops that ``run`` decomposes; None for the
            default ones.
        run (Callable): Runs the decompositions.

    """
    traced = _traced.get()
    if traced is None:
        return run()
    is_traced = any(program is other for other in traced)
    if is_traced and table is not None and is_settled(program, table):
        _set_original_op(program)
        return program
    result = run()
    traced.append(result)
    return result


def is_settled(program: ExportedProgram, table: Collection[Any]) -> bool:
    """Tell whether another trace with this table would reproduce a traced program.

    False wherever a trace does more than call each op once: for mutations,
    outputs that are inputs, control flow, symbolic shapes.

    """
    return _has_plain_signature(program) and all(
        _is_settled_node(node, table) for node in program.graph.nodes
    )


def _has_plain_signature(program: ExportedProgram) -> bool:
    signature = program.graph_signature
    outputs = [spec.arg for spec in signature.output_specs]
    names = [arg.name for arg in outputs if isinstance(arg, TensorArgument)]
    inputs = {spec.arg.name for spec in signature.input_specs}
    return (
        all(spec.kind in _PLAIN_INPUTS for spec in signature.input_specs)
        and all(spec.kind is OutputKind.USER_OUTPUT for spec in signature.output_specs)
        and len(names) == len(outputs) == len(set(names))
        and inputs.isdisjoint(names)
    )


def _is_settled_node(node: Node, table: Collection[Any]) -> bool:
    if node.op == "output":
        return True
    if node.op == "call_function" and node.target is not operator.getitem:
        target = node.target
        if not isinstance(target, OpOverload) or target in table:
            return False
        if target._schema.is_mutable:
            return False
    elif node.op not in ("placeholder", "call_function"):
        return False
    return all(map(_is_static, tree_leaves(node.meta.get("val"))))


def _is_static(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return all(isinstance(size, int) for size in value.shape)
    return value is None or isinstance(value, (bool, int, float, str))


def _set_original_op(program: ExportedProgram) -> None:
    """Record each op as its own origin, as a trace without decomposition does."""
    for node in program.graph.nodes:
        if "original_aten" in node.meta and isinstance(node.target, OpOverload):
            node.meta["original_aten"] = node.target
