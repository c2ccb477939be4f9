# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import math
from typing import cast

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from .before_partition_pass import BeforePartitionPass

_aten = exir_ops.edge.aten


class RewritePowScalarPass(BeforePartitionPass):
    """Give TOSA's POW both operands as tensors.

    Input graph::

        x -> pow.Scalar(base) -> y

    Output graph::

        (full(base), x) -> pow.Tensor_Tensor -> y

    The base is positive and finite, the exponent floating-point. What the
    partitioner does not take in this form is put back.

    Edge dialect, before partitioning.

    """

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for node in list(graph_module.graph.nodes):
            if is_pow_scalar(node) and _has_form(node):
                modified |= self._rewrite(node)
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)

    def _rewrite(self, node: Node) -> bool:
        base, exponent = cast(tuple[float, Node], node.args)
        value = exponent.meta["val"]
        ones = [1] * value.dim()
        options = {"dtype": value.dtype}
        with node.graph.inserting_before(node):
            full = node.graph.call_function(
                _aten.full.default, (ones, float(base)), options
            )
        full.meta = {**node.meta, "val": value.new_empty(ones)}
        before = node.target, node.args
        node.target, node.args = _aten.pow.Tensor_Tensor, (full, exponent)
        if self._why_not(node) is None:
            return True
        node.target, node.args = before
        node.graph.erase_node(full)
        return False


def is_pow_scalar(node: Node) -> bool:
    return node.op == "call_function" and node.target == _aten.pow.Scalar


def _has_form(node: Node) -> bool:
    base, exponent = cast(tuple[float, Node], node.args)
    dtype = exponent.meta["val"].dtype
    return (
        dtype.is_floating_point
        and dtype != torch.float64
        and node.meta["val"].dtype == dtype
        and 0 < base < math.inf
    )
