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
from .index_sources import is_call
from .int32_forms import WHOLE_MOVES
from .narrow_int64_pass import INT64_REJECT_KEY

_cast = exir_ops.edge.dim_order_ops._to_dim_order_copy.default


class CastInt64BeforeMovesPass(BeforePartitionPass):
    """Cast an int64 before it is viewed or permuted, not behind.

    Input graph::

        step: int64[B] -> unsqueeze_copy(1) -> cast(float32) -> mul -> y

    Output graph::

        step: int64[B] -> cast(float32) -> unsqueeze_copy(1) -> mul -> y

    An int64 that may hold any value is cast on the CPU; what moves it need not be
    there. A cast is the same before a move, for it sees one element at a time. Left
    alone are moves that others read too, and casts whose users are on the CPU
    themselves.

    Edge dialect, top-level graph, before partitioning, behind ``NarrowInt64Pass``.

    """

    def call(self, graph_module: GraphModule) -> PassResult:
        found = [n for n in graph_module.graph.nodes if self._is_cast_on_the_cpu(n)]
        rewritten = [self._rewrite(cast) for cast in found]
        modified = any(rewritten)
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)

    # Match.

    def _is_cast_on_the_cpu(self, node: Node) -> bool:
        return (
            is_call(node, (_cast,))
            and _dtype(node.all_input_nodes[0]) == torch.int64
            and node.kwargs.get("dim_order") in (None, _dense(node))
            and self._why_not(node) is not None
            and any(u.op != "output" and self._why_not(u) is None for u in node.users)
        )

    # Rewrite.

    def _rewrite(self, cast: Node) -> bool:
        moves = _moves_before(cast)
        if not moves:
            return False
        source = moves[0].all_input_nodes[0]
        options = {**cast.kwargs, "dim_order": _dense(source)}
        with cast.graph.inserting_before(cast):
            first = cast.graph.call_function(_cast, (source,), options)
            first.meta = {**cast.meta, "val": source.meta["val"].to(_dtype(cast))}
            added = [first]
            for move in moves:
                added.append(_behind(added[-1], move))
        if any(self._why_not(move) is not None for move in added[1:]):
            for node in reversed(added):
                cast.graph.erase_node(node)
            return False
        cast.replace_all_uses_with(added[-1])
        for node in (cast, *reversed(moves)):
            cast.graph.erase_node(node)
        return True


def _moves_before(cast: Node) -> list[Node]:
    """Return what an int64 goes through on its way to the cast alone, in order."""
    moves: list[Node] = []
    source = cast.args[0]
    while is_call(source, WHOLE_MOVES) and len(source.users) == 1:
        moves.insert(0, source)
        source = source.args[0]
    return moves


def _behind(source: Node, move: Node) -> Node:
    """Return the same move of what has another dtype."""
    moved = source.graph.create_node(
        "call_function", move.target, (source, *move.args[1:]), move.kwargs
    )
    moved.meta = {**move.meta, "val": move.meta["val"].to(_dtype(source))}
    moved.meta.pop(INT64_REJECT_KEY, None)
    return moved


def _dtype(node: Node) -> torch.dtype:
    return node.meta["val"].dtype


def _dense(node: Node) -> list[int]:
    return list(range(node.meta["val"].dim()))
