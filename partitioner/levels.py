# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Pure functions over an FX graph that partitioning is made of.

All of them take the graph's nodes as a sequence in topological order (as
``list(graph.nodes)`` gives them), change nothing, use no recursion, and take
O(nodes + edges) time and memory. A *group* maps a node to the id of the
partition that it is in; a node that is in none is left out (or maps to None).

"""

from __future__ import annotations

import operator
from collections.abc import Container, Hashable, Mapping, Sequence
from typing import Optional

from torch.fx import Node

Group = Mapping[Node, Optional[Hashable]]


class DisjointSets:
    """Union-find over the integers ``0 .. count - 1``, by size, with path halving."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))
        self._size = [1] * count

    def find(self, item: int) -> int:
        """Return the representative of the set that ``item`` is in."""
        parent = self._parent
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    def union(self, first: int, second: int) -> int:
        """Join two sets and return the representative of the larger one.

        Both arguments must be representatives. The first stays when the sets
        are of one size.

        """
        if self._size[first] < self._size[second]:
            first, second = second, first
        self._parent[second] = first
        self._size[first] += self._size[second]
        return first


def levels(
    nodes: Sequence[Node],
    supported: Container[Node],
    group: Optional[Group] = None,
) -> dict[Node, int]:
    """Return how often each node's longest way to the outputs leaves the backend.

    The level of a node is the largest number, over all paths that start at it,
    of steps from a node that is not supported to one that is. Supported nodes
    of one level can always share a partition, and no valid partitioning has
    fewer partitions than there are levels with a supported node (the proof is
    in :mod:`capability`).

    Args:
        nodes: The graph's nodes in topological order.
        supported: The nodes that the backend takes.
        group: Count only edges between nodes of one group. This cuts every
            partition of a valid partitioning anew after nodes were taken out
            of it, all partitions in one walk: give the old partitions as
            ``group`` and the nodes that are left as ``supported``. A partition
            is still valid when its nodes that are left have one level;
            otherwise its levels are the fewest pieces that it can be cut into.

    Returns:
        The level of every node, from 0 (nearest to the outputs).

    """
    level: dict[Node, int] = {}
    for node in reversed(nodes):
        users = node.users
        if group is not None:
            own = group.get(node)
            users = [user for user in users if group.get(user) == own]
        highest = 0
        if node in supported:
            for user in users:
                if level[user] > highest:
                    highest = level[user]
        else:
            for user in users:
                through = level[user] + (user in supported)
                if through > highest:
                    highest = through
        level[node] = highest
    return level


def components(nodes: Sequence[Node], group: Group) -> dict[Node, int]:
    """Split every group into its connected components, all in one walk.

    Args:
        nodes: The graph's nodes in topological order.
        group: The group of each node. Nodes without one are left out.

    Returns:
        The component of every node that has a group, numbered from 0 in the
        order of their first nodes.

    """
    index = {node: i for i, node in enumerate(nodes) if group.get(node) is not None}
    sets = DisjointSets(len(nodes))
    for node, i in index.items():
        root = sets.find(i)
        for user in node.users:
            if group.get(user) == group[node]:
                other = sets.find(index[user])
                if other != root:
                    root = sets.union(root, other)
    number: dict[int, int] = {}
    return {
        node: number.setdefault(sets.find(i), len(number)) for node, i in index.items()
    }


def is_acyclic(nodes: Sequence[Node], group: Group) -> bool:
    """Tell whether all groups can be made one node each without a cycle.

    Args:
        nodes: The graph's nodes in topological order.
        group: The group of each node. A node without one stands for itself.

    Returns:
        True if the graph in which every group is one node has no cycle, so
        that an order exists in which the partitions can be run.

    """
    vertex: dict[Node, int] = {}
    number: dict[Hashable, int] = {}
    for node in nodes:
        key = group.get(node)
        # A node never equals a group id, so both can be keys of one dict.
        vertex[node] = number.setdefault(node if key is None else key, len(number))

    members: list[list[Node]] = [[] for _ in number]
    waiting_for = [0] * len(number)
    for node in nodes:
        own = vertex[node]
        members[own].append(node)
        for user in node.users:
            if vertex[user] != own:
                waiting_for[vertex[user]] += 1

    ready = [v for v, count in enumerate(waiting_for) if not count]
    done = 0
    while ready:
        own = ready.pop()
        done += 1
        for node in members[own]:
            for user in node.users:
                target = vertex[user]
                if target != own:
                    waiting_for[target] -= 1
                    if not waiting_for[target]:
                        ready.append(target)
    return done == len(number)


def is_getitem(node: Node) -> bool:
    """Tell whether a node picks an element of a value."""
    return node.op == "call_function" and node.target is operator.getitem


def tuple_producers(nodes: Sequence[Node]) -> dict[Node, None]:
    """Return the nodes that are used by getitem nodes only, in their order."""
    used_by_getitem = {
        source
        for node in nodes
        if node.target is operator.getitem and node.op == "call_function"
        for source in node.all_input_nodes
    }
    if not used_by_getitem:
        return {}
    return dict.fromkeys(
        node
        for node in nodes
        if node in used_by_getitem and all(map(is_getitem, node.users))
    )
