# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The edge ops that compute an index, and what is known about its values.

PyTorch gives such an index as int64. Its values are places in a dimension of the
op's input, so they fit into int32 wherever that dimension's size does.

"""

from __future__ import annotations

import math
import operator
from typing import Any, cast, TypeGuard

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch._ops import OpOverload
from torch.fx import Node

_edge = exir_ops.edge.aten
_cast = exir_ops.edge.dim_order_ops._to_dim_order_copy.default

ARG_OPS = (_edge.argmax.default, _edge.argmin.default)
# These return (values, indices) along a dimension.
SELECTION_OPS = (
    _edge.topk.default,
    _edge.sort.default,
    _edge.sort.stable,
    _edge.kthvalue.default,
)
_INDICES = 1


def schema_of(node: Node) -> torch._C.FunctionSchema:
    """Return the schema of the op, ATen or edge, that a node calls."""
    return cast(OpOverload, node.target)._schema


def argument(node: Node, name: str) -> Any:
    """Return an argument of an op by the name that its schema gives it."""
    for position, formal in enumerate(schema_of(node).arguments):
        if formal.name == name:
            if position < len(node.args):
                return node.args[position]
            return node.kwargs.get(name, formal.default_value)
    raise KeyError(f"{node.target} has no argument {name!r}")


def is_call(node: Any, targets: tuple[Any, ...]) -> TypeGuard[Node]:
    return (
        isinstance(node, Node) and node.op == "call_function" and node.target in targets
    )


def index_source(node: Node) -> Node | None:
    """Return the op that computes ``node``, if ``node`` is an index; or None.

    That is the node itself for ``argmax``, and the node's input for the indices of
    ``topk``.

    """
    if is_call(node, ARG_OPS):
        return node
    if is_call(node, (operator.getitem,)) and is_call(node.args[0], SELECTION_OPS):
        return node.args[0] if node.args[1] == _INDICES else None
    return None


def fits_int32(source: Node) -> bool:
    """Whether each place in the dimension that ``source`` reads is an int32."""
    shape = source.all_input_nodes[0].meta["val"].shape
    dim = argument(source, "dim")
    sizes = shape if dim is None or not shape else (shape[dim],)
    if not all(isinstance(size, int) for size in sizes):
        return False
    return math.prod(sizes) - 1 <= torch.iinfo(torch.int32).max


def is_cast(node: Any, dtype: torch.dtype) -> TypeGuard[Node]:
    """Whether a node is a cast to ``dtype``."""
    return is_call(node, (_cast,)) and node.kwargs.get("dtype") == dtype


def is_widening(node: Any) -> TypeGuard[Node]:
    """Whether a node is a cast from int32 to int64."""
    return is_cast(node, torch.int64) and (
        node.all_input_nodes[0].meta["val"].dtype == torch.int32
    )


def is_narrowed(index: Node) -> bool:
    """Whether nothing reads an index but casts to int32.

    TOSA's index is an int32, so only such an index is the same in a delegate.

    """
    return bool(index.users) and all(is_cast(u, torch.int32) for u in index.users)
