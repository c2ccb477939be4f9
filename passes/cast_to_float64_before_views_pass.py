# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Any, Set, Type

import torch
from executorch.backends.arm._passes import ArmPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass
from torch._ops import OpOverload
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

_aten = torch.ops.aten
_edge = exir_ops.edge.aten
_to_copy = exir_ops.edge.dim_order_ops._to_dim_order_copy.default


class CastToFloat64BeforeViewsPass(ArmPass):
    """Cast an input to float64 before it is viewed, not behind.

    Input graph::

        time: float32[B] -> unsqueeze(1) -> mul(frequencies: float64) -> y

    Output graph::

        time: float32[B] -> to(float64) -> unsqueeze(1) -> mul(frequencies) -> y

    TOSA has no float64, so that it is on the CPU. A view in front of that would be a
    delegate of its own; in a quantized model, the input would be quantized to be
    viewed, and float64 would compute with what is left of it. A view that others read
    too stays.

    ATen before annotation, where a cast may go unsaid, or edge dialect, top-level
    graph, before partitioning.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()
    casts = (_aten.to.dtype, _aten._to_copy.default, _to_copy)
    arithmetic = (
        _aten.add.Tensor,
        _aten.div.Tensor,
        _aten.mul.Tensor,
        _aten.sub.Tensor,
    )
    views = (
        _aten.flatten.using_ints,
        _aten.reshape.default,
        _aten.squeeze.dim,
        _aten.squeeze.dims,
        _aten.unsqueeze.default,
        _aten.view.default,
        _edge.squeeze_copy.dims,
        _edge.unsqueeze_copy.default,
        _edge.view_copy.default,
    )

    def call(self, graph_module: GraphModule) -> PassResult:
        found = [
            (node, operand)
            for node in graph_module.graph.nodes
            if node.target in (*self.casts, *self.arithmetic)
            and _dtype(node) == torch.float64
            for operand in node.all_input_nodes
            if self._is_viewed_input(operand)
        ]
        for node, operand in found:
            self._rewrite(node, operand)
        if found:
            graph_module.recompile()
        return PassResult(graph_module, bool(found))

    # Match.

    def _is_viewed_input(self, node: Node) -> bool:
        if _dtype(node) != torch.float32 or node.op == "placeholder":
            return False
        while node.target in self.views and len(node.users) == 1:
            node = node.all_input_nodes[0]
        return node.op == "placeholder"

    # Rewrite.

    def _rewrite(self, node: Node, operand: Node) -> None:
        views: list[Node] = []
        while operand.op != "placeholder":
            views.append(operand)
            operand = operand.all_input_nodes[0]
        with node.graph.inserting_before(node):
            moved = _cast(operand, node)
            for view in reversed(views):
                moved = _of_float64(view, moved)
        if node.target in self.casts:
            node.replace_all_uses_with(moved)
            node.graph.erase_node(node)
        else:
            node.replace_input_with(views[0], moved)
        for view in views:
            view.graph.erase_node(view)


def _dtype(node: Node) -> Any:
    return getattr(node.meta.get("val"), "dtype", None)


def _cast(source: Node, node: Node) -> Node:
    """Return the source in float64, cast as in the dialect that the node is of."""
    value = source.meta["val"]
    if isinstance(node.target, OpOverload):
        cast = source.graph.call_function(_aten.to.dtype, (source, torch.float64))
    else:
        options: dict[str, Any] = {
            "dtype": torch.float64,
            "dim_order": list(range(value.dim())),
        }
        cast = source.graph.call_function(_to_copy, (source,), options)
    cast.meta = {**node.meta, "val": value.to(torch.float64)}
    return cast


def _of_float64(view: Node, source: Node) -> Node:
    """Return the same view of the source in float64."""
    viewed = view.graph.create_node(
        view.op, view.target, (source, *view.args[1:]), dict(view.kwargs)
    )
    viewed.meta = {**view.meta, "val": view.meta["val"].to(torch.float64)}
    return viewed
