# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from executorch.backends.arm._passes import ArmPass, ConvertMinMaxPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from .index_sources import is_call

_aten = torch.ops.aten
_edge = exir_ops.edge.aten

_VALUES_AND_INDEX: dict[Any, tuple[Any, Any]] = {
    _aten.max.dim: (_aten.amax.default, _aten.argmax.default),
    _aten.min.dim: (_aten.amin.default, _aten.argmin.default),
    _edge.max.dim: (_edge.amax.default, _edge.argmax.default),
    _edge.min.dim: (_edge.amin.default, _edge.argmin.default),
}
_DTYPES = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.int8,
    torch.int16,
    torch.int32,
)


@dataclass(frozen=True)
class _Extremum:
    source: Node
    dim: int
    keepdim: bool = False


def has_index(node: Node) -> bool:
    """Whether a node is a ``max`` or ``min`` along a dimension whose index is read."""
    return is_call(node, tuple(_VALUES_AND_INDEX)) and any(
        is_call(user, (operator.getitem,)) and user.args[1] == 1 and user.users
        for user in node.users
    )


class SplitMaxMinPass(ArmPass):
    """Split ``max`` and ``min`` along a dimension where both results are read.

    The backend has the extremum alone. Both ops below take the first of equal
    elements and let NaN win, as does the one that they replace.

    Input graph::

        x -> max(dim=1, keepdim=True) -> getitem(0) -> values
                                      -> getitem(1) -> indices: int64

    Output graph::

        x -> amax([1], True) -> values
        x -> argmax(1, True) -> indices: int64

    ATen dialect before annotation for quantization, or edge dialect before
    partitioning; only nodes whose index is read.

    Args:
        why_not (Callable[[Node], str | None]): Returns why the partitioner does not
            take a node; one whose extremum is declined is left as it was.

    """

    _passes_required_after: set[type[ExportPass]] = {ConvertMinMaxPass}

    def __init__(
        self,
        why_not: Callable[[Node], str | None] = lambda node: None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._why_not = why_not

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for node in list(graph_module.graph.nodes):
            if has_index(node) and self.allowed_to_transform(node.meta):
                modified |= self._split(node, _Extremum(*node.args, **node.kwargs))
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)

    def _split(self, node: Node, what: _Extremum) -> bool:
        if what.source.meta["val"].dtype not in _DTYPES:
            return False
        extremum, place = _VALUES_AND_INDEX[node.target]
        with node.graph.inserting_before(node):
            results = (
                node.graph.call_function(
                    extremum, (what.source, [what.dim], what.keepdim)
                ),
                node.graph.call_function(place, (what.source, what.dim, what.keepdim)),
            )
        for result, value in zip(results, node.meta["val"]):
            result.meta = {**node.meta, "val": value}
        if self._why_not(results[0]):
            for result in results:
                node.graph.erase_node(result)
            return False
        for user in list(node.users):
            user.replace_all_uses_with(results[cast(int, user.args[1])])
            user.graph.erase_node(user)
        node.graph.erase_node(node)
        for result in results:
            if not result.users:
                result.graph.erase_node(result)
        return True
