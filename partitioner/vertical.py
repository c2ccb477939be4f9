# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Vertical fusion: join supported nodes with their direct users only.

This is what ``skip_horizontal_fusion=True`` asks for. Nodes are visited from
the outputs to the inputs; each supported node starts a partition and tries the
partitions of its users in turn. Two partitions may be joined unless a third
vertex lies on a path between them, because the joined partition would then
depend on itself. Which partitions result depends on that order, so the levels
of :mod:`levels` cannot tell; they only make the search short.

The quotient graph (one vertex for each partition and for each node without
one) is kept up to date under the joins, together with a level for each vertex
that never grows along an edge and drops by one where an edge leads from an
unsupported to a supported vertex. Then:

* Partitions that are adjacent but were not joined have an unsupported vertex
  on some path between them. (Take a longest path between the two. The join was
  refused, so there is a path with a vertex between. If all vertices on the
  longest path are partitions, its last edge joins adjacent partitions and by
  the same argument has a longer detour, or the detour is unsupported.)
* Hence every path between two partitions that has a vertex in between passes
  an unsupported one and drops a level. Partitions of one level can be joined
  at once, and a search for a path only has to visit levels above its end.

The search walks from both ends in turn and stops when either has nowhere to
go, so that it costs about twice the cheaper direction.

"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterator, Sequence

from torch.fx import Node

from .levels import DisjointSets


class VerticalFusion:
    """Joins supported nodes with their users, in one walk over the graph.

    A vertex is the position of a node counted from the end of the graph. After
    construction, ``sets.find(position)`` is the partition of a supported node.

    """

    def __init__(self, nodes: Sequence[Node], supported: Container[Node]) -> None:
        self.sets = DisjointSets(len(nodes))
        self._supported = [node in supported for node in reversed(nodes)]
        self._users: list[set[int]] = []
        self._inputs: list[set[int]] = [set() for _ in nodes]
        self._level: list[int] = []
        position: dict[Node, int] = {}
        for here, node in enumerate(reversed(nodes)):
            position[node] = here
            # A dict keeps the order of the users, in which joins are tried.
            users = dict.fromkeys(self.sets.find(position[user]) for user in node.users)
            self._add(here, users)
            if self._supported[here]:
                for user in users:
                    if self._supported[user] and not self._detour(here, user):
                        here = self._join(here, user)

    def _add(self, here: int, users: dict[int, None]) -> None:
        self._users.append(set(users))
        self._level.append(max((self._least(here, u) for u in users), default=0))
        for user in users:
            self._inputs[user].add(here)

    def _least(self, vertex: int, user: int) -> int:
        """Return the lowest level that ``vertex`` may have above ``user``."""
        drops = self._supported[user] and not self._supported[vertex]
        return self._level[user] + drops

    def _detour(self, top: int, bottom: int) -> bool:
        """Tell whether a path from ``top`` to ``bottom`` has a vertex in between."""
        low, high = self._level[bottom], self._level[top]
        if low == high:
            return False
        below: set[int] = set()
        above: set[int] = set()
        down = self._walk(top, bottom, self._users, 1, below, above)
        up = self._walk(bottom, top, self._inputs, -1, above, below)
        while True:
            for walk in (down, up):
                met = next(walk, None)
                if met is None:
                    return False
                if met:
                    return True

    def _walk(
        self,
        start: int,
        end: int,
        edges: list[set[int]],
        sign: int,
        seen: set[int],
        seen_by_other: set[int],
    ) -> Iterator[bool]:
        """Visit what ``start`` reaches, nearest to the level of ``end`` first.

        Yields once for every edge: whether the two walks have met.

        """
        level = self._level
        # A vertex in between is above the lower end and not above the upper one.
        low = min(level[start], level[end])
        high = max(level[start], level[end])
        heap = [(0, start)]
        while heap:
            _, vertex = heapq.heappop(heap)
            for other in edges[vertex]:
                if other in seen or other == end or not low < level[other] <= high:
                    # The edge from start to end is no detour; from any other
                    # vertex to the end there is one.
                    yield other == end and vertex != start
                    continue
                seen.add(other)
                heapq.heappush(heap, (sign * level[other], other))
                yield other in seen_by_other

    def _join(self, first: int, second: int) -> int:
        """Join a partition with one of its users and return their vertex."""
        if self._level[second] < self._level[first]:
            self._raise(second, self._level[first])
        kept = self.sets.union(first, second)
        gone = second if kept == first else first
        for mine, theirs in (
            (self._users, self._inputs),
            (self._inputs, self._users),
        ):
            for other in mine[gone]:
                theirs[other].discard(gone)
                if other != kept:
                    theirs[other].add(kept)
                    mine[kept].add(other)
            mine[gone] = set()
        return kept

    def _raise(self, vertex: int, level: int) -> None:
        """Give ``vertex`` a level and lift what must not be below it."""
        self._level[vertex] = level
        pending = [vertex]
        while pending:
            vertex = pending.pop()
            for above in self._inputs[vertex]:
                least = self._least(above, vertex)
                if self._level[above] < least:
                    self._level[above] = least
                    pending.append(above)
