# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Choose among the levels a node may have, to move fewer bytes.

Most nodes have slack: any level between those of their users and those of their
inputs is valid. A value costs its bytes once if it leaves its partition, and
once for every other partition that reads it. Finding the cheapest levels is a
hard problem, so this is a local search, in a fixed number of linear walks:

* Walk over the graph in both directions and move each supported node to the
  cheapest level that one of its neighbours has. On the way unsupported nodes
  are pushed as far as they go, so that they are never in the way of the next.
* Do the same with whole pieces, the connected nodes of one level, because a
  single node does not leave its neighbours even if all of them should go.
* In the end put constants, views and casts beside their consumer.

A node only ever joins a level that a neighbour has, so that no partition is
added.

"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.utils._pytree import tree_leaves

from .levels import components, is_getitem, tuple_producers

_ROUNDS = 3
_CANDIDATES = 3

# Operators that move or reinterpret data without computing, by their base name.
_FOLLOWING_OPS = frozenset("""
    _to_copy _to_dim_order_copy _unsafe_view alias alias_copy contiguous detach
    detach_copy expand expand_copy float half permute permute_copy reshape squeeze
    squeeze_copy t t_copy to transpose transpose_copy type unsqueeze unsqueeze_copy
    view view_copy
    """.split())


def value_bytes(node: Node) -> int:
    """Return the size of a node's value in bytes, 1 if the graph does not say.

    Reads ``meta["val"]`` (torch.export) or ``meta["tensor_meta"]`` (ShapeProp).
    Symbolic dimensions count with their hint, other scalars with 8 bytes.

    """
    value = node.meta.get("val", node.meta.get("tensor_meta"))
    if value is None:
        return 1
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _tensor_bytes(value)
    return sum(
        _tensor_bytes(leaf) if isinstance(leaf, torch.Tensor) else 8
        for leaf in tree_leaves(value)
    )


def _tensor_bytes(tensor: Any) -> int:
    count = tensor.dtype.itemsize
    for extent in tensor.shape:
        if not isinstance(extent, int):
            hint = extent.node.hint
            extent = 1 if hint is None else int(hint)
        count *= extent
    return count


def boundary_bytes(nodes: Iterable[Node], partition: Mapping[Node, Any]) -> int:
    """Return how many bytes cross the boundaries of partitions.

    Args:
        nodes: The graph's nodes.
        partition: The partition of each node that is in one.

    Returns:
        The sum over all values of their bytes, once if the value leaves the
        partition that it was computed in, and once for every partition that
        reads it and did not compute it.

    """
    total = 0
    for node in nodes:
        own = partition.get(node)
        readers = {partition.get(user) for user in node.users} - {own}
        if readers:
            leaves = own is not None
            total += value_bytes(node) * (leaves + len(readers - {None}))
    return total


def constants(nodes: Sequence[Node]) -> set[Node]:
    """Return the attributes and what is computed from nothing else."""
    known: set[Node] = set()
    for node in nodes:
        if node.op not in ("placeholder", "output"):
            if all(source in known for source in node.all_input_nodes):
                known.add(node)
    return known


def fewest_bytes(
    nodes: Sequence[Node],
    supported: Collection[Node],
    level: Mapping[Node, int],
) -> dict[Node, int]:
    """Return other valid levels, with fewer bytes between the partitions.

    Args:
        nodes: The graph's nodes in topological order.
        supported: The nodes that the backend takes.
        level: Valid levels, as :func:`levels.levels` returns them.

    Returns:
        A level for every node. Nodes only go to levels that are in use.

    """
    families = _families(nodes)
    placement = _Placement(nodes, supported, level, families)
    placement.improve(families)
    for _ in range(_ROUNDS):
        saved = placement.improve(placement.pieces())
        saved += placement.improve(families)
        if not saved:
            break
    placement.follow_consumers(families)
    return dict(zip(nodes, placement.level))


def _families(nodes: Sequence[Node]) -> list[int]:
    """Return for each node its position, for a getitem that of its producer.

    A getitem with several inputs is no member: it cannot always follow.

    """
    producers = tuple_producers(nodes)
    first: dict[Node, int] = {}
    for position, node in enumerate(nodes):
        inputs = node.all_input_nodes
        follows = is_getitem(node) and len(inputs) == 1 and inputs[0] in producers
        first[node] = first[inputs[0]] if follows else position
    return list(first.values())


def _follows_consumer(node: Node, known_constants: Collection[Node]) -> bool:
    if node in known_constants:
        return True
    target = node.target
    schema = getattr(target, "_schema", None)
    name = schema.name if schema is not None else getattr(target, "__name__", target)
    return (
        node.op in ("call_function", "call_method")
        and str(name).rpartition("::")[2] in _FOLLOWING_OPS
    )


def _members(unit: Sequence[int]) -> dict[int, list[int]]:
    members: dict[int, list[int]] = {}
    for i, key in enumerate(unit):
        members.setdefault(key, []).append(i)
    return members


class _Unit:
    """What a unit's level depends on; see :class:`_Placement`."""

    def __init__(self, placement: _Placement, members: list[int], unit: Sequence[int]):
        self.key = unit[members[0]]
        self.low, self.high = 0, placement.highest
        # How often the unit reads each value from outside, and each of its own.
        self.reads: Counter[int] = Counter()
        self.own: Counter[int] = Counter()
        # The bytes of the edges to each level, to choose candidates by.
        self.pull: Counter[int] = Counter()
        level, supported = placement.level, placement.supported
        for i in members:
            self.own[i] = 0
            for user in placement.users[i]:
                if unit[user] == self.key:
                    self.own[i] += 1
                    continue
                self.low = max(
                    self.low, level[user] + (supported[user] and not supported[i])
                )
                if placement.placed[user]:
                    self.pull[level[user]] += placement.bytes[i]
            for source in placement.inputs[i]:
                if unit[source] == self.key:
                    continue
                self.reads[source] += 1
                self.high = min(
                    self.high, level[source] - (supported[i] and not supported[source])
                )
                if placement.placed[source]:
                    self.pull[level[source]] += placement.bytes[source]


class _Placement:
    """The levels of all nodes, by position in the graph, while they are improved.

    A *unit* is a set of nodes that moves as a whole. Units are given as one
    number for each node, the position of one of the unit's members; making each
    unit one node must not close a cycle.

    """

    def __init__(
        self,
        nodes: Sequence[Node],
        supported: Collection[Node],
        level: Mapping[Node, int],
        families: Sequence[int],
    ) -> None:
        position = {node: i for i, node in enumerate(nodes)}
        self.nodes = nodes
        self.level = [level[nodes[first]] for first in families]
        # What ends up in a partition: getitems follow their producer.
        self.placed = [nodes[first] in supported for first in families]
        self.supported = [
            placed and node in supported for node, placed in zip(nodes, self.placed)
        ]
        self.bytes = [value_bytes(node) for node in nodes]
        self.inputs = [[position[i] for i in n.all_input_nodes] for n in nodes]
        self.users = [[position[user] for user in n.users] for n in nodes]
        self.highest = max(self.level, default=0)
        # How many users in partitions a value has on each level.
        self.readers: list[Counter[int]] = [
            Counter(self.level[user] for user in users if self.placed[user])
            for users in self.users
        ]

    def pieces(self) -> list[int]:
        """Return the connected nodes of each partition as units."""
        group = {
            node: level
            for node, level, placed in zip(self.nodes, self.level, self.placed)
            if placed
        }
        piece = components(self.nodes, group)
        first: dict[int, int] = {}
        return [
            first.setdefault(piece[node], i) if node in piece else i
            for i, node in enumerate(self.nodes)
        ]

    def improve(self, unit: Sequence[int]) -> int:
        """Move units to better levels, from the inputs on and then back.

        Returns the bytes that this saved.

        """
        members = _members(unit)
        order = self._sorted(unit, members)
        saved = 0
        for key in order:
            saved += self._improve_unit(members[key], unit, forward=True)
        for key in reversed(order):
            saved += self._improve_unit(members[key], unit, forward=False)
        return saved

    def follow_consumers(self, families: Sequence[int]) -> None:
        """Put constants, views and casts on the first level that needs them."""
        known_constants = constants(self.nodes)
        members = _members(families)
        for key in reversed(self._sorted(families, members)):
            unit = _Unit(self, members[key], families)
            if not self.placed[key]:
                for i in members[key]:
                    self.level[i] = unit.low
            elif unit.low in unit.pull and all(
                _follows_consumer(self.nodes[i], known_constants) for i in members[key]
            ):
                self._move(unit, unit.low)

    def _sorted(
        self, unit: Sequence[int], members: Mapping[int, list[int]]
    ) -> list[int]:
        """Return the units in topological order."""
        waiting_for = dict.fromkeys(members, 0)
        for i, users in enumerate(self.users):
            for user in users:
                waiting_for[unit[user]] += unit[user] != unit[i]
        ready = deque(key for key, count in waiting_for.items() if not count)
        order = []
        while ready:
            key = ready.popleft()
            order.append(key)
            for i in members[key]:
                for user in self.users[i]:
                    if unit[user] != key:
                        waiting_for[unit[user]] -= 1
                        if not waiting_for[unit[user]]:
                            ready.append(unit[user])
        return order

    def _improve_unit(
        self, members: list[int], units: Sequence[int], forward: bool
    ) -> int:
        unit = _Unit(self, members, units)
        if not self.placed[unit.key]:
            for i in members:
                self.level[i] = unit.high if forward else unit.low
            return 0
        now = self.level[unit.key]
        choices = [lv for lv in unit.pull if unit.low <= lv <= unit.high and lv != now]
        if not choices:
            return 0
        if len(choices) > _CANDIDATES:
            choices.sort(key=lambda lv: (-unit.pull[lv], lv))
            del choices[_CANDIDATES:]
        cost = {lv: self._cost(unit, lv) for lv in (now, *choices)}
        # Ties go on in the direction of the walk, to get past a plateau.
        ahead = -1 if forward else 1
        best = min(cost, key=lambda lv: (cost[lv], -unit.pull[lv], ahead * lv))
        self._move(unit, best)
        return cost[now] - cost[best]

    def _cost(self, unit: _Unit, level: int) -> int:
        """Return the bytes that depend on a unit's level, if it were ``level``."""
        here = level == self.level[unit.key]
        cost = 0
        for source, count in unit.reads.items():
            others = self.readers[source][level] - (count if here else 0)
            if self.placed[source] and self.level[source] == level:
                leaves = len(self.users[source]) > others + count
                cost += self.bytes[source] * leaves
            else:
                cost += self.bytes[source] * (self.placed[source] + (not others))
        for i, count in unit.own.items():
            others = self.readers[i][level] - (count if here else 0)
            leaves = len(self.users[i]) > others + count
            cost += self.bytes[i] * (leaves - (others > 0))
        return cost

    def _move(self, unit: _Unit, level: int) -> None:
        now = self.level[unit.key]
        if level == now:
            return
        for i in unit.own:
            self.level[i] = level
        for value, count in (*unit.reads.items(), *unit.own.items()):
            if count:
                self.readers[value][now] -= count
                self.readers[value][level] += count
