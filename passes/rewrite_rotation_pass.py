# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from typing import cast

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from .before_partition_pass import BeforePartitionPass
from .constant_evaluator import NotConstant
from .module_constants import ModuleConstants
from .program_constants import ProgramConstants

_aten = exir_ops.edge.aten


class RewriteRotationPass(BeforePartitionPass):
    """Slice where a constant index rotates a dimension, as ``roll`` decomposes to.

    Input graph::

        (arange(W) + k) % W -> i
        index_select(x, 1, i) -> y

    Output graph::

        x -> slice(1, k, W) -> a
        x -> slice(1, 0, k) -> b
        cat([a, b], 1) -> y

    So there is no GATHER, which not every target and dtype has. What the partitioner
    does not take is put back. Edge dialect, top-level graph, before partitioning.

    """

    _constants: ProgramConstants | ModuleConstants

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for node in list(graph_module.graph.nodes):
            if not is_index_select(node):
                continue
            start = self._start(node)
            if start is not None:
                modified |= self._rewrite(node, start)
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)

    def _start(self, node: Node) -> int | None:
        """Return the first place that is read, if the others follow in a circle."""
        x, dim, index = cast(tuple[Node, int, Node], node.args)
        shape = x.meta["val"].shape
        size = shape[dim] if shape else 0
        if not isinstance(size, int) or index.meta["val"].shape != (size,):
            return None
        try:
            places = self._constants.value(index)
        except NotConstant:
            return None
        start = int(places[0]) if size else 0
        circle = (torch.arange(size) + start) % max(size, 1)
        return start if 0 < start and torch.equal(places.long(), circle) else None

    def _rewrite(self, node: Node, start: int) -> bool:
        x, dim, index = cast(tuple[Node, int, Node], node.args)
        size = x.meta["val"].shape[dim]
        before = node.target, node.args, node.kwargs
        slices = [
            _slice(node, x, dim, begin, end)
            for begin, end in ((start, size), (0, start))
        ]
        node.target, node.args, node.kwargs = _aten.cat.default, (slices, dim), {}
        if all(self._why_not(changed) is None for changed in (*slices, node)):
            self._constants.remove_dead([index])
            return True
        node.target, node.args, node.kwargs = before
        for added in slices:
            node.graph.erase_node(added)
        return False


def is_index_select(node: Node) -> bool:
    return node.op == "call_function" and node.target == _aten.index_select.default


def _slice(node: Node, x: Node, dim: int, begin: int, end: int) -> Node:
    with node.graph.inserting_before(node):
        part = node.graph.call_function(_aten.slice_copy.Tensor, (x, dim, begin, end))
    value = x.meta["val"].narrow(dim, begin, end - begin).contiguous()
    part.meta = {**node.meta, "val": value}
    return part
