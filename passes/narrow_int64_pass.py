# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import networkx
import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg
from torch.fx.passes.infra.pass_base import PassResult
from torch.utils._pytree import tree_leaves, tree_map

from .before_partition_pass import BeforePartitionPass
from .index_ops import IndexOp, match
from .index_sources import (
    fits_int32,
    index_source,
    is_call,
    is_cast,
    is_narrowed,
    is_widening,
    SELECTION_OPS,
)
from .input_bounds import indexed_size, input_bounds, is_counted_from_both_ends
from .int32_forms import Call, Emitter, Form, int32_form, MOVES, Refused
from .integer_ranges import integer_ranges, why_not as why_not_int32
from .program_constants import ProgramConstants

# Meta key of an op that stays int64 and on the CPU; the value is the reason.
INT64_REJECT_KEY = "arm_int64_reject"
# Meta key of an op that computes in int32 what the program computes in int64.
INT32_FORM_KEY = "arm_int32_form"

_edge = exir_ops.edge.aten
_cast = exir_ops.edge.dim_order_ops._to_dim_order_copy.default
# Moves of one tensor that give no element twice.
_REARRANGEMENTS = tuple(
    op
    for op in MOVES
    if op
    not in (
        _edge.cat.default,
        _edge.expand_copy.default,
        _edge.repeat.default,
        operator.getitem,
    )
)


class NarrowInt64Pass(BeforePartitionPass):
    """Compute in int32 what is int64 in PyTorch, where the values are the same.

    TOSA has no int64 arithmetic, and PyTorch makes an int64 of each index, count and
    position. The pass bounds the values of all integers in the program, builds the
    int32 form of each int64 op whose operands, intermediates and result fit, shows it
    to the partitioner, and puts casts where int32 and int64 meet.

    Input graph::

        x -> argmax -> i: int64[N] -> remainder(7) -> r: int64[N] -> embedding(w, .)
                                                                  -> output

    Output graph::

        x -> argmax -> int64[N] -> cast(int32) -> remainder(7) -> r: int32[N]
        r -> embedding(w, .)
        r -> cast(int64) -> output

    Connected int64 ops are an *island*. Its casts from and to int64 stay on the CPU, so
    an island is left as it was where it costs more casts than it moves ops. What
    is int64 outside of islands keeps dtype and value, the program's inputs and outputs
    among it. An input enters an island through one cast, if the program reads it as an
    index: any value that is no place in the dimension is an error in eager PyTorch then,
    so the valid ones fit.

    An int64 op that the partitioner does not take, and that has no int32 form either,
    has the reason in ``node.meta["arm_int64_reject"]``.

    Edge dialect, top-level graph, before partitioning.

    """

    # Whether more is narrowed than indices that are moved and read.
    arithmetic = True
    _constants: ProgramConstants | None

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = _Narrowing(
            graph_module, self._why_not, self._constants, self.arithmetic
        ).run()
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)


class _Member:
    """One int64 op of an island, and what stands for it in int32.

    Attributes:
        node (Node): The op.
        int32 (Node | None): Has the same values as ``node``; None where ``node`` makes
            no int64 and was changed itself.
        stays (bool): Whether ``node`` had its int32 before, and is left as it is.
        moves (bool): Whether an op moves from the CPU into a delegate.
        inputs (tuple[Node, ...]): What ``node`` reads, before it is changed.
        inserted (list[Node]): The nodes that were added, in order.

    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.int32: Node | None = None
        self.stays = False
        self.moves = True
        self.inputs = tuple(node.all_input_nodes)
        self.inserted: list[Node] = []
        self._before = node.target, node.args, node.kwargs

    def stand_in(self, int32: Node, stays: bool) -> bool:
        """Have an int32 that is there stand for the op."""
        self.int32, self.stays, self.moves = int32, stays, False
        return True

    def change(self, call: Call) -> None:
        self.node.target, self.node.args, self.node.kwargs = call
        self.node.meta[INT32_FORM_KEY] = True

    def insert(self, call: Call, value: Any) -> Node:
        """Put a call in front of the op; where ``value`` is int64, its is int32."""
        with self.node.graph.inserting_before(self.node):
            inserted = self.node.graph.call_function(*call)
        inserted.meta = dict(self.node.meta)
        inserted.meta["val"] = tree_map(_as_int32, value)
        inserted.meta[INT32_FORM_KEY] = True
        self.inserted.append(inserted)
        return inserted

    def undo(self) -> None:
        self.node.target, self.node.args, self.node.kwargs = self._before
        self.node.meta.pop(INT32_FORM_KEY, None)
        for node in reversed(self.inserted):
            node.graph.erase_node(node)
        self.inserted.clear()


class _Emitter:
    """What the int32 form of one op is built with."""

    def __init__(self, narrowing: _Narrowing, member: _Member) -> None:
        self._narrowing = narrowing
        self._member = member

    def read(self, node: Node) -> Node:
        value = node.meta.get("val")
        if isinstance(value, (tuple, list)):
            return self._narrowing.int32_of_outputs(node)
        if not isinstance(value, torch.Tensor) or value.dtype == torch.int32:
            return node
        if value.dtype == torch.int64:
            return self._narrowing.int32_of(node)
        if value.dtype.is_floating_point or value.dtype.is_complex:
            raise Refused(f"it reads {node} beside, which is {value.dtype}")
        options = {"dtype": torch.int32, "dim_order": list(range(value.dim()))}
        return self.insert((_cast, (node,), options), value.to(torch.int32))

    def insert(self, call: Call, value: Any) -> Node:
        inserted = self._member.insert(call, value)
        self._narrowing.check(inserted)
        return inserted


class _Narrowing:
    """One run of the pass over one graph."""

    def __init__(
        self,
        graph_module: GraphModule,
        why_not: Callable[[Node], str | None],
        constants: ProgramConstants | None,
        arithmetic: bool,
    ) -> None:
        self._graph = graph_module.graph
        self._why_not = why_not
        self._constants = constants
        self._arithmetic = arithmetic
        self._bounds = input_bounds(self._graph, self._is_user_input)
        self._ranges = integer_ranges(graph_module, self._known_values)
        # By the int64 op; and by int64 values that enter islands, their casts.
        self._members: dict[Node, _Member] = {}
        self._entrances: dict[Node, Node] = {}
        self._refused: dict[Node, str] = {}

    def run(self) -> bool:
        for node in list(self._graph.nodes):
            if self._arithmetic:
                node.meta.pop(INT64_REJECT_KEY, None)
            if (
                node.op == "call_function"
                and _has_int64(node)
                and not self._is_constant(node)
            ):
                self._try_to_narrow(node)
        changed = [self._keep_or_undo(island) for island in self._islands()]
        self._remove_unused()
        return any((*changed, self._mark_refused()))

    # What is known of values.

    def _is_constant(self, node: Node) -> bool:
        return self._constants is not None and self._constants.is_constant(node)

    def _is_user_input(self, node: Node) -> bool:
        return self._constants is not None and self._constants.is_user_input(node)

    def _known_values(self, node: Node) -> torch.Tensor | None:
        """Return a constant, or the ends of what an input may hold."""
        if self._constants is not None and self._constants.is_constant(node):
            return self._constants.value(node)
        return self._bounds.get(node)

    # One op: its int32 form, beside the int64 one for now.

    def _try_to_narrow(self, node: Node) -> None:
        member = _Member(node)
        try:
            if self._narrow(member):
                self._members[node] = member
        except Refused as error:
            member.undo()
            self._refused[node] = str(error)

    def _narrow(self, member: _Member) -> bool:
        node = member.node
        if (source := index_source(node)) is not None:
            return self._narrow_source(member, source)
        if is_widening(node):
            (int32,) = node.all_input_nodes  # which may be a cast that is replaced
            return member.stand_in(self._known_int32(int32) or int32, stays=True)
        if is_cast(node, torch.int32):
            int32 = self._known_int32(node.all_input_nodes[0])
            return int32 not in (None, node) and member.stand_in(int32, stays=False)
        forms = self._forms(node)
        if not forms:
            return False
        if isinstance(node.meta["val"], torch.Tensor):
            if (reason := why_not_int32(node, self._ranges)) is not None:
                raise Refused(reason)
        self._narrow_to_first(member, forms)
        return True

    def _narrow_source(self, member: _Member, source: Node) -> bool:
        """Cast the index that an op computes to int32, behind an op of its own.

        The op and the cast end in one partition whatever else depends on the op; in
        two, the index would be an int64 between them. The lowering of the op computes
        equal ones once.

        """
        index = member.node
        if not index.users or not fits_int32(source):
            return False
        if _is_done(source, index):
            return member.stand_in(next(iter(index.users)), stays=True)
        with source.graph.inserting_after(source):
            copy = source.graph.node_copy(source)
        member.inserted.append(copy)
        if index is not source:
            with source.graph.inserting_after(copy):
                member.inserted.append(source.graph.node_copy(index))
            member.inserted[-1].replace_input_with(source, copy)
        member.int32 = _insert_cast(member.inserted[-1], torch.int32)
        member.inserted.append(member.int32)
        for node in member.inserted:
            self.check(node)
        return True

    def _narrow_to_first(self, member: _Member, forms: list[Form]) -> None:
        """Build the first of several forms that the partitioner takes."""
        reasons = []
        for form in forms:
            try:
                return self._build(member, form)
            except Refused as error:
                member.undo()
                reasons.append(str(error))
        raise Refused(reasons[0])

    def _build(self, member: _Member, form: Form) -> None:
        node, emitter = member.node, _Emitter(self, member)
        call = form(node, emitter)
        if _makes_int64(node):
            member.int32 = emitter.insert(call, node.meta["val"])
            return
        member.change(call)
        if is_call(node, (_cast,)):
            # On the CPU it may as well read int32.
            member.moves = self._why_not(node) is None
        else:
            self.check(node)

    def check(self, node: Node) -> None:
        """Raise Refused unless the partitioner takes a node."""
        reason = self._why_not(node)
        if reason is not None and not self._waits_for_constants(node):
            raise Refused(reason)

    def _waits_for_constants(self, node: Node) -> bool:
        """Whether nothing is left of int64 but what a constant can be narrowed for."""
        op = match(node)
        indices = () if op is None else op.indices
        wide = [i for i in indices if i is not None and _makes_int64(i)]
        return bool(wide) and all(self._is_constant(index) for index in wide)

    # Operands.

    def _known_int32(self, node: Node) -> Node | None:
        if node in self._members:
            return self._members[node].int32
        return self._entrances.get(node)

    def int32_of(self, node: Node) -> Node:
        """Return the int32 of an int64; from outside of an island, by a cast."""
        if (int32 := self._known_int32(node)) is not None:
            return int32
        if not self._arithmetic or node.op not in ("placeholder", "call_function"):
            raise Refused(f"{node} is int64")
        if not self._ranges[node].fits(torch.int32):
            raise Refused(
                self._refused.get(node)
                or why_not_int32(node, self._ranges)
                or f"{node} is int64"
            )
        if self._constants is not None and self._constants.is_constant(node):
            return self._constants.add(self._constants.value(node).to(torch.int32))
        self._entrances[node] = _insert_cast(node, torch.int32)
        return self._entrances[node]

    def int32_of_outputs(self, node: Node) -> Node:
        if (int32 := self._known_int32(node)) is None:
            raise Refused(f"{node} is int64")
        return int32

    # Forms.

    def _forms(self, node: Node) -> list[Form]:
        if (op := match(node)) is not None:
            return self._index_forms(node, op)
        form = int32_form(node, self._arithmetic)
        return [] if form is None else [form]

    def _index_forms(self, node: Node, op: IndexOp) -> list[Form]:
        """Return the ways to read an int32 index; constants are not narrowed here."""
        indices = [index for index in op.indices if index is not None]
        wide = [index for index in indices if _makes_int64(index)]
        if not _makes_int64(node):
            if all(map(self._is_constant, wide or indices)):
                return []
            if not wide and self._why_not(node) is None:
                return []

        def same(node: Node, emitter: Emitter) -> Call:
            args, kwargs = map_arg(
                (node.args, node.kwargs), lambda n: self._read(n, node, op, emitter)
            )
            if op.is_write and not self._writes_apart(op):
                raise Refused(
                    "the index may name a place twice; TOSA's SCATTER takes each once"
                )
            return node.target, args, kwargs

        def select(node: Node, emitter: Emitter) -> Call:
            return _as_index_select(*same(node, emitter)[:2])

        return [same, select] if is_call(node, (_edge.index.Tensor,)) else [same]

    def _read(self, operand: Node, node: Node, op: IndexOp, emitter: Emitter) -> Node:
        """Return what an index op reads in place of an operand."""
        if operand not in op.indices:
            return emitter.read(operand) if _makes_int64(operand) else operand
        if operand.meta["val"].dtype not in (torch.int32, torch.int64):
            return operand  # a mask
        if _makes_int64(operand) and self._is_constant(operand):
            return operand
        index = emitter.read(operand)
        if not is_counted_from_both_ends(node) or not self._may_be_negative(operand):
            return index
        return _count_from_the_front(index, indexed_size(op, operand), emitter)

    def _may_be_negative(self, node: Node) -> bool:
        return self._ranges[node].lo < 0

    def _writes_apart(self, op: IndexOp) -> bool:
        """Whether an index names no place twice: SCATTER takes each place once."""
        index, *others = [index for index in op.indices if index is not None]
        if others:
            return False
        if index.meta["val"].numel() == 1:
            return True
        while is_call(index, _REARRANGEMENTS):
            index = index.all_input_nodes[0]
        source = index_source(index)
        if source is None or not is_call(source, SELECTION_OPS):
            return False
        return source.all_input_nodes[0].meta["val"].dim() == 1

    # Islands.

    def _islands(self) -> list[list[Node]]:
        """Return the connected int64 ops, and the entrances, each in graph order."""
        graph = networkx.Graph()
        for node, member in self._members.items():
            graph.add_node(node)
            graph.add_edges_from(
                (node, value)
                for value in member.inputs
                if value in self._members or value in self._entrances
            )
        order = {node: place for place, node in enumerate(self._graph.nodes)}
        islands = networkx.connected_components(graph)
        return [sorted(island, key=order.__getitem__) for island in islands]

    def _keep_or_undo(self, island: list[Node]) -> bool:
        members = [self._members[node] for node in island if node in self._members]
        if all(member.stays for member in members):
            return False
        moved = sum(member.moves for member in members)
        casts = len(island) - len(members)
        casts += sum(self._is_read_outside(member) for member in members)
        joins = any(self._joins_others(member) for member in members)
        if moved > casts or (joins and moved == casts):
            self._replace(members)
            return True
        for member in reversed(members):
            member.undo()
            self._refused[member.node] = (
                f"in int32 it takes {casts} casts on the CPU for {moved} ops"
            )
        return False

    def _is_read_outside(self, member: _Member) -> bool:
        """Whether it takes a cast back to int64."""
        if member.stays or not _makes_int64(member.node):
            return False
        return any(user not in self._members for user in member.node.users)

    def _joins_others(self, member: _Member) -> bool:
        """Whether a member is beside what a delegate may hold without the island."""
        if member.moves and not _makes_int64(member.node):
            return True
        source = index_source(member.node)
        inputs = member.inputs if source is None else source.all_input_nodes
        return (member.moves or member.stays) and any(
            not _makes_int64(value) and not self._is_constant(value)
            for value in inputs
            if isinstance(value.meta.get("val"), torch.Tensor)
        )

    def _replace(self, members: list[_Member]) -> None:
        """Put the int32 in the place of the int64, and casts where that is read."""
        replaced = [
            (m, m.int32) for m in members if m.int32 is not None and not m.stays
        ]
        for member, int32 in replaced:
            if self._is_read_outside(member):
                int32 = _insert_cast(int32, torch.int64)
            member.node.replace_all_uses_with(
                int32, delete_user_cb=self._reads_what_is_replaced
            )
        for member, _ in reversed(replaced):
            self._erase(member.node)
        for member in members:
            if member.stays and not member.node.users:
                self._erase(member.node)

    def _reads_what_is_replaced(self, user: Node) -> bool:
        return user not in self._members or self._members[user].stays

    def _erase(self, node: Node) -> None:
        """Remove a node, and what only it used."""
        inputs = node.all_input_nodes
        node.graph.erase_node(node)
        for value in inputs:
            if value in self._members or value.users or value._erased:
                continue
            if value.op == "call_function":
                self._erase(value)
            elif self._constants is not None:
                self._constants.remove_dead([value])

    def _remove_unused(self) -> None:
        for entrance in self._entrances.values():
            if not entrance.users:
                entrance.graph.erase_node(entrance)
        if self._constants is not None:
            self._constants.remove_unused()

    def _mark_refused(self) -> bool:
        """Leave the reason at the ops that stay on the CPU for it."""
        if not self._arithmetic:
            return False
        refused = {
            node: reason
            for node, reason in self._refused.items()
            if not node._erased and self._why_not(node) is not None
        }
        for node, reason in refused.items():
            node.meta[INT64_REJECT_KEY] = reason
        return bool(refused)


def _count_from_the_front(
    index: Node, size: int | torch.SymInt, emitter: Emitter
) -> Node:
    """``index < 0 ? index + size : index``: TOSA knows no places from the end."""
    if not isinstance(size, int) or 2 * size > torch.iinfo(torch.int32).max:
        raise Refused(f"{index} may be negative, and it indexes a dimension of {size}")
    value = index.meta["val"]
    negative = emitter.insert((_edge.lt.Scalar, (index, 0), {}), value.to(torch.bool))
    full = (_edge.full.default, ([1] * value.dim(), size), {"dtype": torch.int32})
    places = emitter.insert(full, value.new_full([1] * value.dim(), size))
    counted = emitter.insert((_edge.add.Tensor, (index, places), {}), value)
    return emitter.insert((_edge.where.self, (negative, counted, index), {}), value)


def _as_index_select(target: Any, args: tuple[Any, ...]) -> Call:
    """``index(x, [None, i])`` -> ``index_select(x, 1, i)``."""
    source, indices = args
    *skipped, index = indices
    if not skipped or any(skipped) or index is None or index.meta["val"].dim() != 1:
        raise Refused(f"{target} has no other form")
    return _edge.index_select.default, (source, len(skipped), index), {}


def _is_done(source: Node, index: Node) -> bool:
    alone = source is index or len(source.users) == 1
    return alone and len(index.users) == 1 and is_narrowed(index)


def _insert_cast(node: Node, dtype: torch.dtype) -> Node:
    value = node.meta["val"]
    behind = node
    while behind.next.op == "placeholder":
        behind = behind.next
    with node.graph.inserting_after(behind):
        cast = node.graph.call_function(
            _cast, (node,), {"dtype": dtype, "dim_order": list(range(value.dim()))}
        )
    cast.meta = dict(node.meta)
    cast.meta["val"] = value.to(dtype)
    return cast


def _as_int32(value: Any) -> Any:
    is_int64 = isinstance(value, torch.Tensor) and value.dtype == torch.int64
    return value.to(torch.int32) if is_int64 else value


def _makes_int64(node: Node) -> bool:
    return any(
        isinstance(value, torch.Tensor) and value.dtype == torch.int64
        for value in tree_leaves(node.meta.get("val"))
    )


def _has_int64(node: Node) -> bool:
    """Whether an op makes or reads int64, or has an index with a ``None`` in front."""
    return is_call(node, (_edge.index.Tensor,)) or any(
        map(_makes_int64, (node, *node.all_input_nodes))
    )
