# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from executorch.backends.arm._passes import ArmPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg
from torch.fx.passes.infra.pass_base import PassResult

from .index_ops import match
from .index_sources import (
    fits_int32,
    index_source,
    is_call,
    is_cast,
    is_narrowed,
    is_widening,
    SELECTION_OPS,
)

_edge = exir_ops.edge.aten
_cast = exir_ops.edge.dim_order_ops._to_dim_order_copy.default

# Ops that move the elements of their inputs and compute nothing.
_MOVES = (
    _edge.cat.default,
    _edge.expand_copy.default,
    _edge.flip.default,
    _edge.permute_copy.default,
    _edge.repeat.default,
    _edge.select_copy.int,
    _edge.slice_copy.Tensor,
    _edge.squeeze_copy.dim,
    _edge.squeeze_copy.dims,
    _edge.t_copy.default,
    _edge.transpose_copy.int,
    _edge.unsqueeze_copy.default,
    _edge.view_copy.default,
)
# Those of them that give no element twice.
_REARRANGEMENTS = tuple(
    op
    for op in _MOVES
    if op not in (_edge.cat.default, _edge.expand_copy.default, _edge.repeat.default)
)


class NarrowIndexPass(ArmPass):
    """Carry the index that an op computes in int32 as far as that is the same.

    ``argmax``, ``topk`` and the like return int64, TOSA's index is an int32. The
    pass puts a cast to int32 and one back behind such an op, and moves the one back
    down the graph: past what only moves elements, into ops that read an index and
    into other casts. What is left of it is the one cast in front of an op on
    the CPU or of the output.

    Input graph::

        x -> argmax -> i: int64[N] -> unsqueeze_copy(1) -> gather(t, 1, .)
                                   -> output

    Output graph::

        x -> argmax -> i: int64[N] -> cast(int32) -> i32
        i32 -> unsqueeze_copy(1) -> gather(t, 1, .)
        i32 -> cast(int64) -> output

    The partitioner is asked about each node on the way. A source that it does not
    take, or whose dimension has more places than int32 can count, is left as it
    was; at any other node the cast back stays in front.

    ``topk`` and the like are split in two ops, of which one gives the values and one
    the index; their lowering computes both at once.

    Edge dialect, top-level graph, before partitioning. It changes the program:
    hand it a copy.

    Args:
        why_not (Callable[[Node], str | None]): Returns why the partitioner does
            not take a node, or None if it does.
        is_constant (Callable[[Node], bool]): Whether an int64 index beside one that
            is narrowed here is narrowed as a constant, by a later pass.

    """

    _passes_required_after: set[type[ExportPass]] = set()

    def __init__(
        self,
        why_not: Callable[[Node], str | None],
        is_constant: Callable[[Node], bool] = lambda node: False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._why_not = why_not
        self._is_constant = is_constant

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for node in list(graph_module.graph.nodes):
            source = index_source(node)
            if source is None or not node.users or _is_done(source, node):
                continue
            if fits_int32(source):
                modified |= self._narrow(source, node)
        # Annotation for quantization puts in casts, and has removed some.
        for node in list(graph_module.graph.nodes):
            if is_widening(node) and _source_of(node.args[0]) is not None:
                modified |= self._sink(node)
            elif is_call(node, (_edge.index.Tensor,)) and _reads_int32(node):
                modified |= self._select(node)
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)

    def _narrow(self, source: Node, index: Node) -> bool:
        """Cast the index to int32 and back, if the partitioner takes the source."""
        own = _own_index(source, index)
        narrow = _insert_cast(own[-1], torch.int32)
        if any(self._why_not(node) for node in (*own, narrow)):
            for node in (narrow, *reversed(own)):
                node.graph.erase_node(node)
            return False
        index.replace_all_uses_with(_insert_cast(narrow, torch.int64))
        index.graph.erase_node(index)
        if not source.users and source is not index:
            source.graph.erase_node(source)
        return True

    def _sink(self, wide: Node) -> bool:
        """Move a cast from int32 to int64 down the graph; return whether it went."""
        to_sink, moved = [wide], False
        while to_sink:
            wide = to_sink.pop()
            users = len(wide.users)
            for user in list(wide.users):
                if is_call(user, _MOVES):
                    to_sink += self._move_past(user)
                elif is_cast(user, torch.int32):
                    user.replace_all_uses_with(wide.args[0])
                    user.graph.erase_node(user)
                elif is_call(user, (_cast,)) or self._may_read_int32(wide, user):
                    self._read_int32(wide, user)
            moved |= len(wide.users) < users
            if not wide.users:
                wide.graph.erase_node(wide)
        return moved

    def _move_past(self, user: Node) -> list[Node]:
        """``move(cast(i32))`` -> ``cast(move(i32))``; return the new cast."""
        if not all(is_widening(node) for node in user.all_input_nodes):
            return []  # an input of a cat is a true int64
        with user.graph.inserting_before(user):
            moved = user.graph.create_node(
                "call_function",
                user.target,
                *map_arg((user.args, user.kwargs), lambda node: node.args[0]),
            )
        moved.meta = dict(user.meta)
        moved.meta["val"] = user.meta["val"].to(torch.int32)
        if self._why_not(moved):
            user.graph.erase_node(moved)
            return []
        wide = _insert_cast(moved, torch.int64)
        user.replace_all_uses_with(wide)
        user.graph.erase_node(user)
        return [wide]

    def _may_read_int32(self, wide: Node, user: Node) -> bool:
        op = match(user)
        if op is None or wide not in op.indices:
            return False
        return not op.is_write or _writes_apart(wide.args[0], op.indices)

    def _read_int32(self, wide: Node, user: Node) -> None:
        """Have ``user`` read the int32, in a form that the partitioner takes."""
        before = user.args, user.kwargs
        user.replace_input_with(wide, wide.args[0])
        if self._why_not(user) is None or self._waits_for_constants(user):
            return
        if not self._select(user):
            user.args, user.kwargs = before

    def _select(self, user: Node) -> bool:
        """``index(x, [None, i32])`` -> ``index_select(x, 1, i32)``, if that is taken."""
        if (select := _as_index_select(user)) is None:
            return False
        before = user.target, user.args
        user.target, user.args = select
        if self._why_not(user) is None:
            return True
        user.target, user.args = before
        return False

    def _waits_for_constants(self, user: Node) -> bool:
        """Whether nothing is left of int64 but what a constant can be narrowed for."""
        op = match(user)
        indices = () if op is None else op.indices
        wide = [i for i in indices if i is not None and _is_int64(i)]
        return bool(wide) and all(self._is_constant(index) for index in wide)


def _is_done(source: Node, index: Node) -> bool:
    alone = source is index or len(source.users) == 1
    return alone and len(index.users) == 1 and is_narrowed(index)


def _own_index(source: Node, index: Node) -> tuple[Node, ...]:
    """Compute the index again, for nobody but the cast to int32.

    So the op and the cast end in one partition whatever else depends on the op; in
    two, the index would be an int64 between them. The lowering of the op computes
    equal ones once.

    """
    with source.graph.inserting_after(source):
        copies = [source.graph.node_copy(source)]
    if index is not source:
        with source.graph.inserting_after(copies[0]):
            copies.append(source.graph.node_copy(index))
            copies[1].replace_input_with(source, copies[0])
    return tuple(copies)


def _insert_cast(node: Node, dtype: torch.dtype) -> Node:
    value = node.meta["val"]
    with node.graph.inserting_after(node):
        cast = node.graph.call_function(
            _cast, (node,), {"dtype": dtype, "dim_order": list(range(value.dim()))}
        )
    cast.meta = dict(node.meta)
    cast.meta["val"] = value.to(dtype)
    return cast


def _is_int64(node: Node) -> bool:
    return node.meta["val"].dtype == torch.int64


def _reads_int32(user: Node) -> bool:
    return any(index and _source_of(index) is not None for index in user.args[1])


def _as_index_select(user: Node) -> tuple[Any, tuple[Any, ...]] | None:
    """Return target and arguments of an ``index_select`` that is ``x[:, i]``."""
    if not is_call(user, (_edge.index.Tensor,)):
        return None
    source, indices = user.args
    *skipped, index = indices
    if not skipped or any(skipped) or index is None or index.meta["val"].dim() != 1:
        return None
    return _edge.index_select.default, (source, len(skipped), index)


def _source_of(narrow: Node, moves: tuple[Any, ...] = _MOVES) -> Node | None:
    """Return the op that computed an int32 index, on which only ``moves`` were done."""
    while is_call(narrow, moves):
        narrow = narrow.all_input_nodes[0]
    return index_source(narrow.args[0]) if is_cast(narrow, torch.int32) else None


def _writes_apart(narrow: Node, indices: tuple[Node | None, ...]) -> bool:
    """Whether an index names no place twice: SCATTER takes each place once."""
    if len([index for index in indices if index is not None]) > 1:
        return False
    if narrow.meta["val"].numel() == 1:
        return True
    source = _source_of(narrow, _REARRANGEMENTS)
    return is_call(source, SELECTION_OPS) and source.args[0].meta["val"].dim() == 1
