# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The steps after the proposal in ``TOSAPartitioner``, each linear in the graph.

``TOSAPartitioner._tag_module`` tags one proposed partition after the other. For
each it asks which nodes carry the tag, whether the partition is still free of
cycles once its outer Q/DQ nodes were de-tagged, and how to cut it if it is not.
Stock answers each by walking the whole graph, once per partition. A
:class:`Proposal` answers them from the partition's own nodes:

* Only the partition's nodes can carry its tag.
* A path that leaves a partition and comes back does so through nodes that were
  de-tagged from that very partition. For every node on such a path lies, by the
  levels in :mod:`capability`, on the partition's own level, and the supported
  nodes of that level are the partition.

Needs torch alone; the rules (which nodes are de-tagged, and why) stay stock's.

"""

from __future__ import annotations

from collections.abc import Set
from typing import Optional

from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import Partition

from .levels import levels


class Proposal:
    """The partitions proposed for one graph, ready to be asked about."""

    def __init__(self, graph_module: GraphModule, partitions: list[Partition]) -> None:
        self._home = {
            node: index
            for index, partition in enumerate(partitions)
            for node in partition.nodes
        }
        self._nodes: list[list[Node]] = [[] for _ in partitions]
        for node in graph_module.graph.nodes:
            index = self._home.get(node)
            if index is not None:
                self._nodes[index].append(node)
        self._next = 0

    def tagged(self, tag: str) -> list[Node]:
        """Return the nodes tagged ``tag``, in graph order.

        Partitions are tagged in the order of the proposal, so looking for the
        next one from where the last one was found costs a step a partition.

        """
        while self._next < len(self._nodes):
            found = [n for n in self._nodes[self._next] if _tag(n) == tag]
            if found:
                return found
            self._next += 1
        return []

    def is_valid(self, nodes: Set[Node]) -> bool:
        """Tell whether what is left of one partition has no cycle through the rest.

        Args:
            nodes: The nodes of one proposed partition that are still tagged.

        """
        return len(self._levels(nodes)) <= 1

    def fewest_pieces(self, nodes: Set[Node]) -> list[set[Node]]:
        """Cut what is left of one partition into the fewest valid pieces.

        The pieces are valid together, not only one by one: an edge never leads
        from a piece to an earlier one in the list.

        """
        pieces = self._levels(nodes)
        return [pieces[level] for level in sorted(pieces, reverse=True)]

    def _levels(self, nodes: Set[Node]) -> dict[int, set[Node]]:
        pieces: dict[int, set[Node]] = {}
        if nodes:
            own = self._nodes[self._home[next(iter(nodes))]]
            level = levels(own, nodes, self._home)
            for node in own:
                if node in nodes:
                    pieces.setdefault(level[node], set()).add(node)
        return pieces


def _tag(node: Node) -> Optional[str]:
    return node.meta.get("delegation_tag")
