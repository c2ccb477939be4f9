# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from math import prod
from typing import Any, cast

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from .before_partition_pass import BeforePartitionPass

_VIEWS = {
    torch.ops.aten.gather.default: torch.ops.aten.reshape.default,
    exir_ops.edge.aten.gather.default: exir_ops.edge.aten.view_copy.default,
}


class FlattenGatherPass(BeforePartitionPass):
    """View a gather as one of rank 3 along its middle dimension, as TOSA has it.

    Input graph::

        x [2, 7, 8, 16], index [2, 7, 1, 16] -> gather(dim=2) -> [2, 7, 1, 16]

    Output graph::

        x -> view [14, 8, 16]
        index -> view [14, 1, 16]
        gather(dim=1) -> [14, 1, 16] -> view [2, 7, 1, 16]

    Dimensions other than the one that is gathered must agree, and be known. A gather
    that the partitioner would not take with an int32 index stays as it is. ATen,
    before annotation, or edge dialect, before partitioning.

    """

    def call(self, graph_module: GraphModule) -> PassResult:
        found = [node for node in graph_module.graph.nodes if is_other_gather(node)]
        rewritten = [self._rewrite(node) for node in found]
        modified = any(rewritten)
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)

    def _rewrite(self, node: Node) -> bool:
        x, dim, index = cast(tuple[Node, int, Node], node.args[:3])
        size, flat = _flat(x, dim), _flat(index, dim)
        view, result = _VIEWS[node.target], node.meta["val"]
        with node.graph.inserting_before(node):
            values = _call(node, view, (x, size), x.meta["val"].reshape(size))
            places = _call(node, view, (index, flat), index.meta["val"].reshape(flat))
            value = result.reshape(flat)
            taken = _call(node, node.target, (values, 1, places), value)
            back = _call(node, view, (taken, list(result.shape)), result)
        if self._is_taken(taken, places):
            node.replace_all_uses_with(back)
            node.graph.erase_node(node)
            return True
        for added in (back, taken, places, values):
            node.graph.erase_node(added)
        return False

    def _is_taken(self, gather: Node, places: Node) -> bool:
        """Whether the partitioner takes it; an int64 index is narrowed later."""
        index = places.meta["val"]
        places.meta["val"] = index.to(torch.int32)
        reason = self._why_not(gather)
        places.meta["val"] = index
        return reason is None


def is_other_gather(node: Node) -> bool:
    """Whether a node is a gather that TOSA's can express, and not one of rank 3."""
    if node.op != "call_function" or node.target not in _VIEWS:
        return False
    x, dim, index = (_shape_or_value(argument) for argument in node.args[:3])
    dim = dim % max(len(x), 1)
    known = all(isinstance(size, int) for size in (*x, *index)) and x and prod(x)
    agrees = x[:dim] == index[:dim] and x[dim + 1 :] == index[dim + 1 :]
    return bool(known) and agrees and not (dim == 1 and len(x) in (2, 3))


def _shape_or_value(argument: Any) -> Any:
    return tuple(argument.meta["val"].shape) if isinstance(argument, Node) else argument


def _flat(node: Node, dim: int) -> list[int]:
    shape = node.meta["val"].shape
    dim %= len(shape)
    return [prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])]


def _call(node: Node, op: Any, args: tuple, value: torch.Tensor) -> Node:
    added = node.graph.call_function(op, args)
    added.meta = {**node.meta, "val": value}
    return added
