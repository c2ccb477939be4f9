# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import operator
from typing import Any, cast, Set, Type

import torch
from executorch.backends.arm._passes import ArmPass
from executorch.exir.pass_base import ExportPass
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult
from torchao.quantization.pt2e.utils import _fuse_conv_bn_

_WITH_GRAD = torch.ops.higher_order.wrap_with_set_grad_enabled


class InlineGradModePass(ArmPass):
    """Put what a model does under ``torch.no_grad()`` where it is called.

    Input graph::

        x -> wrap_with_set_grad_enabled(False, submodule, x) -> getitem(0) -> y
        submodule: x -> linear -> relu

    Output graph::

        x -> linear -> relu -> y

    Gradients are of no use here, and a quantizer sees the top-level graph alone.
    Batch norms that now follow their convolutions are fused into them, as
    ``prepare_pt2e`` did outside. ATen, before annotation.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        while calls := [n for n in graph_module.graph.nodes if n.target is _WITH_GRAD]:
            for call in calls:  # one in another shows when that one is inlined
                _inline(graph_module, call)
            modified = True
        if modified:
            graph_module.graph.eliminate_dead_code()
            graph_module.delete_all_unused_submodules()
            graph_module.recompile()
            _fuse_conv_bn_(graph_module)
        return PassResult(graph_module, modified)


def _inline(graph_module: GraphModule, call: Node) -> None:
    _, region, *inputs = cast(tuple[Any, ...], call.args)
    module = cast(GraphModule, graph_module.get_submodule(region.target))
    values = dict(zip(module.graph.find_nodes(op="placeholder"), inputs, strict=True))
    with call.graph.inserting_before(call):
        for node in module.graph.nodes:
            if node.op == "output":
                break
            if node.op == "get_attr":
                values[node] = _attribute(graph_module, call, module, node)
            elif node.op != "placeholder":
                values[node] = call.graph.node_copy(node, values.__getitem__)
    outputs = [values.get(output, output) for output in node.args[0]]
    for taken in list(call.users):
        assert taken.target is operator.getitem
        taken.replace_all_uses_with(outputs[cast(int, taken.args[1])])
        call.graph.erase_node(taken)
    call.graph.erase_node(call)


def _attribute(
    graph_module: GraphModule, call: Node, module: GraphModule, node: Node
) -> Node:
    """Give the outer module what a node reads of the inner one."""
    name = f"{call.name}_{node.name}"
    value = operator.attrgetter(str(node.target))(module)
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        graph_module.register_buffer(name, value)
    else:
        setattr(graph_module, name, value)
    found = call.graph.get_attr(name)
    found.meta = dict(node.meta)
    return found
