# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Set, Type

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.exir.pass_base import ExportPass
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

_aten = torch.ops.aten


class CastIntOperandsPass(ArmOpTargetedPass):
    """Cast an integer that is computed with a float, as PyTorch does unseen.

    Input graph::

        step: int64 -> mul(step, frequencies: float32) -> y

    Output graph::

        step: int64 -> to(float32) -> mul(., frequencies: float32) -> y

    The quantizer leaves arithmetic on an integer alone. ATen, before annotation.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()
    target_ops = (
        _aten.add.Tensor,
        _aten.div.Tensor,
        _aten.mul.Tensor,
        _aten.sub.Tensor,
    )

    def call(self, graph_module: GraphModule) -> PassResult:
        found = [n for n in graph_module.graph.nodes if _is_promotion(n)]
        for node in found:
            for operand in filter(_is_integer, node.all_input_nodes):
                node.replace_input_with(operand, _cast_in_front(node, operand))
        if found:
            graph_module.recompile()
        return PassResult(graph_module, bool(found))


def _is_promotion(node: Node) -> bool:
    """Whether a node makes float32 of an integer and what is beside it."""
    return (
        node.op == "call_function"
        and node.target in CastIntOperandsPass.target_ops
        and getattr(node.meta.get("val"), "dtype", None) == torch.float32
        and any(map(_is_integer, node.all_input_nodes))
    )


def _is_integer(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and not (
        value.is_floating_point() or value.is_complex()
    )


def _cast_in_front(node: Node, operand: Node) -> Node:
    with node.graph.inserting_before(node):
        cast = node.graph.call_function(_aten.to.dtype, (operand, torch.float32), {})
    cast.meta = {**node.meta, "val": operand.meta["val"].to(torch.float32)}
    return cast
