# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Give symbols of a graph the value that became known at compile time."""

from __future__ import annotations

from typing import Any, cast

import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Graph, Node
from torch.utils._pytree import tree_map


def specialize(graph: Graph, values: dict[sympy.Symbol, int]) -> None:
    """Replace symbols by integers in the metadata and the arguments of a graph.

    ::

        u0 -> 2

        a: [u0, 8] = index(x, [mask])          a: [2, 8] = index(x, [i32])
        n: u0 = sym_size(a, 0)
        view(a, [n, 2, 4])              ->     view(a, [2, 2, 4])
        assert_scalar(n <= 4)

    Nodes whose value is a plain number now are replaced by it and erased, and so
    are assertions that hold. The shape environment, which other programs share,
    is not touched.

    Args:
        graph (Graph): Top-level graph, changed in place.
        values (dict[sympy.Symbol, int]): What each symbol stands for.

    """
    if not values:
        return
    for node in list(graph.nodes):
        if "val" not in node.meta or node.op in ("placeholder", "output"):
            continue
        node.meta["val"] = tree_map(
            lambda value: _specialize_value(value, values), node.meta["val"]
        )
        if isinstance(node.meta["val"], (bool, int, float)):
            _replace_by_number(node, node.meta["val"])
    for node in reversed(list(graph.nodes)):
        holds = "assert_scalar" in str(node.target) and node.args[:1] == (True,)
        if node.op == "call_function" and holds:
            graph.erase_node(node)


def _replace_by_number(node: Node, number: bool | int | float) -> None:
    for user in list(node.users):
        user.args, user.kwargs = torch.fx.node.map_arg(
            (user.args, user.kwargs),
            lambda argument: number if argument is node else argument,
        )
    node.graph.erase_node(node)


def _specialize_value(value: Any, values: dict[sympy.Symbol, int]) -> Any:
    if isinstance(value, FakeTensor):
        return _specialize_tensor(value, values)
    if isinstance(value, (torch.SymInt, torch.SymBool, torch.SymFloat)):
        return _specialize_number(value, values)
    return value


def _specialize_tensor(
    tensor: FakeTensor, values: dict[sympy.Symbol, int]
) -> FakeTensor:
    geometry = (tuple(tensor.shape), tensor.stride())
    shape, stride = tree_map(lambda size: _specialize_number(size, values), geometry)
    if all(new is old for new, old in zip(shape, tensor.shape)):
        return tensor
    with tensor.fake_mode:
        specialized = torch.empty_strided(
            shape, stride, dtype=tensor.dtype, device=tensor.device
        )
    return cast(FakeTensor, specialized)


def _specialize_number(number: Any, values: dict[sympy.Symbol, int]) -> Any:
    if not isinstance(number, (torch.SymInt, torch.SymBool, torch.SymFloat)):
        return number
    expression = number.node.expr
    known = expression.xreplace(
        {symbol: sympy.Integer(value) for symbol, value in values.items()}
    )
    if known == expression:
        return number
    if known.is_Integer or known.is_Boolean and not known.free_symbols:
        return bool(known) if known.is_Boolean else int(known)
    return number.node.shape_env.create_symintnode(known, hint=None)
