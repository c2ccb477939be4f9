# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import operator
from typing import Set, Type

import torch
from executorch.backends.arm._passes import ArmPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

_edge = exir_ops.edge.aten
_VALUES = {_edge.max.dim: _edge.amax.default, _edge.min.dim: _edge.amin.default}


class DropInt64ExtremumIndexPass(ArmPass):
    """Take the extremum of int64 without its index, where nobody reads that.

    Input graph::

        x: int64[N, W] -> min(dim=1, keepdim=True) -> getitem(0) -> y

    Output graph::

        x: int64[N, W] -> amin([1], True) -> y

    So it has one result, and is computed in int32 where its values fit. Other dtypes
    are left to the backend. Edge dialect, before partitioning.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()

    def call(self, graph_module: GraphModule) -> PassResult:
        found = [node for node in graph_module.graph.nodes if is_int64_extremum(node)]
        for node in found:
            _rewrite(node)
        if found:
            graph_module.recompile()
        return PassResult(graph_module, bool(found))


def is_int64_extremum(node: Node) -> bool:
    """Whether a node is a max or min of int64 along a dimension, its index unread."""
    if node.op != "call_function" or node.target not in _VALUES:
        return False
    unread = all(user.args[1] == 0 or not user.users for user in node.users)
    return unread and node.all_input_nodes[0].meta["val"].dtype == torch.int64


def _rewrite(node: Node) -> None:
    x, dim, *keepdim = node.args
    with node.graph.inserting_before(node):
        value = node.graph.call_function(
            _VALUES[node.target], (x, [dim], *keepdim), node.kwargs
        )
    value.meta = {**node.meta, "val": node.meta["val"][0]}
    for taken in list(node.users):
        assert taken.target is operator.getitem
        if taken.args[1] == 0:
            taken.replace_all_uses_with(value)
        node.graph.erase_node(taken)
    node.graph.erase_node(node)
