# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from .before_partition_pass import BeforePartitionPass

_aten = torch.ops.aten
_edge = exir_ops.edge.aten
# With the op that fills: the first argument, a size or a tensor, stays.
_FILLED = {
    _aten.empty.memory_format: _aten.full.default,
    _aten.empty_like.default: _aten.full_like.default,
    _edge.empty.memory_format: _edge.full.default,
    _edge.empty_permuted.default: _edge.full.default,
}


class FillUninitializedPass(BeforePartitionPass):
    """Make memory that nobody wrote a constant zero.

    A model that fills a tensor in slices starts from ``empty``. No backend lowers
    that, and a quantizer that observes what was in the memory gets any scale.

    Input graph::

        empty_permuted([2, 8], [0, 1]) -> slice_scatter(a, 1, 0, 4) -> y

    Output graph::

        full([2, 8], 0) -> slice_scatter(a, 1, 0, 4) -> y

    Whoever reads such memory may read zeros. A layout other than the dense one, a
    size that is not known, and what the partitioner does not take, stay.

    ATen, before annotation, or edge dialect, before partitioning.

    """

    def call(self, graph_module: GraphModule) -> PassResult:
        found = [node for node in graph_module.graph.nodes if is_uninitialized(node)]
        filled = [self._fill(node) for node in found if _is_static(node)]
        modified = any(filled)
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)

    def _fill(self, node: Node) -> bool:
        before = node.target, node.args, node.kwargs
        node.target = _FILLED[node.target]
        node.args = (node.args[0], 0)
        node.kwargs = {"dtype": node.meta["val"].dtype}
        if self._why_not(node) is None:
            return True
        node.target, node.args, node.kwargs = before
        return False


def is_uninitialized(node: Node) -> bool:
    return node.op == "call_function" and node.target in _FILLED


def _is_static(node: Node) -> bool:
    if node.target == _aten.empty_like.default:
        return True  # full_like has its layout and its size
    value = node.meta["val"]
    return value.is_contiguous() and all(isinstance(n, int) for n in value.shape)
