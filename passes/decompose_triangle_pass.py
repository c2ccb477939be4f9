# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from typing import cast, Set, Type

import torch
from executorch.backends.arm._passes import ArmPass
from executorch.exir.pass_base import ExportPass
from torch._ops import OpOverload
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from .module_constants import ModuleConstants

_aten = torch.ops.aten

_TRIANGLES = (_aten.triu.default, _aten.tril.default)
_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.bool)


class DecomposeTrianglePass(ArmPass):
    """Decompose triu and tril into a selection, before the quantizer sees them.

    Input graph::

        x [..., R, C] -> triu(diagonal) -> y

    Output graph::

        where(constant bool[..., R, C], x, 0) -> y

    The mask is a constant: one computed by the graph would be quantized, and of more
    than 256 rows some would be taken for the same. What is masked out becomes 0 also
    where it is NaN. For bool it is ``logical_and``. A triangle of a constant is
    computed. Other integers, and a size that is not known when the program is
    lowered, are left alone.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()

    def call(self, graph_module: GraphModule) -> PassResult:
        constants = ModuleConstants(graph_module, "_triangle")
        modified = False
        for node in list(graph_module.graph.nodes):
            if node.op == "call_function" and node.target in _TRIANGLES:
                modified |= _rewrite(node, constants)
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)


def _rewrite(node: Node, constants: ModuleConstants) -> bool:
    if constants.is_constant(node):
        node.replace_all_uses_with(constants.add(constants.value(node)))
        constants.remove_dead([node])
        return True
    if not _is_known(node):
        return False
    x, *diagonal = node.args
    value = node.meta["val"]
    kept = torch.ones((1,) * (value.dim() - 2) + value.shape[-2:], dtype=torch.bool)
    triangle = cast(OpOverload, node.target)
    mask = constants.add(triangle(kept, *diagonal))
    if value.dtype == torch.bool:
        node.target, node.args = _aten.logical_and.default, (x, mask)
    else:
        zero = constants.add(torch.zeros((1,) * value.dim(), dtype=value.dtype))
        node.target, node.args = _aten.where.self, (mask, x, zero)
    return True


def _is_known(node: Node) -> bool:
    value, arguments = node.meta["val"], node.args[1:]
    return value.dtype in _DTYPES and all(
        isinstance(size, int) for size in (*value.shape[-2:], *arguments)
    )
