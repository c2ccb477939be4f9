# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from typing import Set, Type

import torch
from executorch.backends.arm._passes import ArmPass
from executorch.exir.pass_base import ExportPass
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

_aten = torch.ops.aten
_NORMS = (_aten.layer_norm.default, _aten.group_norm.default)


class KeepNormsDensePass(ArmPass):
    """Keep the output of a norm dense where its input is not.

    A norm gives dense memory. What it is decomposed to before annotation keeps the
    strides of the input, and a ``view`` behind it, valid when the model was exported,
    then throws.

    Input graph::

        x [1, 16, 8] strides (128, 1, 16) -> layer_norm -> view([1, 4, 32])

    Output graph::

        x -> clone(contiguous_format) -> layer_norm -> view([1, 4, 32])

    A program whose norms have dense inputs is left as it is. ATen, before annotation.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()

    def call(self, graph_module: GraphModule) -> PassResult:
        strided = [node for node in graph_module.graph.nodes if _keeps_strides(node)]
        for node in strided:
            _make_input_dense(node)
        if strided:
            graph_module.recompile()
        return PassResult(graph_module, bool(strided))


def _keeps_strides(node: Node) -> bool:
    if node.op != "call_function" or node.target not in _NORMS:
        return False
    return not node.all_input_nodes[0].meta["val"].is_contiguous()


def _make_input_dense(node: Node) -> None:
    source = node.all_input_nodes[0]
    with node.graph.inserting_before(node):
        dense = node.graph.call_function(
            _aten.clone.default, (source,), {"memory_format": torch.contiguous_format}
        )
    dense.meta = {**source.meta, "val": source.meta["val"].contiguous()}
    node.replace_input_with(source, dense)
