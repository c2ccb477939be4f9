# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Set, Type

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.exir.pass_base import ExportPass
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

_aten = torch.ops.aten


class RemoveDetachPass(ArmOpTargetedPass):
    """Remove detach and alias, which show the tensor that they are given.

    Input graph::

        x -> detach -> linear -> y

    Output graph::

        x -> linear -> y

    Gradients are of no use here. Either op is decomposed to an alias_copy that has
    lost its annotation, and stays on the CPU between two delegates. ATen, before
    annotation.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()
    target_ops = (_aten.detach.default, _aten.alias.default)

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for op in self.target_ops:
            for node in graph_module.graph.find_nodes(op="call_function", target=op):
                node.replace_all_uses_with(node.args[0])
                graph_module.graph.erase_node(node)
                modified = True
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)
