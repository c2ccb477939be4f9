# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A capability-based partitioner that is linear in the graph.

Why levels are enough
---------------------
Call a node *supported* if the backend takes it. A partitioning is *valid* if
the graph has no cycle after every partition was made one node. Walking from
the outputs to the inputs, give every node the level

    level(n) = max over users u of  level(u) + 1  if u is supported and n is not
                                    level(u)      otherwise

and 0 without users. The partitions are the sets of supported nodes of one level.

*Valid.* Along an edge the level never grows, and it drops on every edge from an
unsupported to a supported node. Suppose there were a cycle of partitions and
unsupported nodes. Inside a partition the level is constant, so it is constant
all around, and as different partitions have different levels, the cycle has one
partition only. It must leave that partition (the graph itself has no cycle)
through an unsupported node, and the edge that comes back drops a level.

*Fewest.* From a node of the highest level, L, starts a path with L edges from an
unsupported to a supported node. The supported nodes at the ends of those edges,
and the first supported node of the path, cannot share a partition with each
other, because the path leaves it between them. So every valid partitioning has
at least as many partitions as there are levels with a supported node.

*The same as torch's own.* ``CapabilityBasedPartitioner`` visits the nodes from
the outputs, starts a partition for each supported node and joins it with every
partition so far, in the order of their first nodes, unless a cycle results. By
induction its partitions are the levels of the nodes visited so far, in the order
of the levels: a new node of level l has a path through an unsupported node to
each level below l, so it is refused there; it is taken by level l, as shown
above; and each level above l has such a path to level l, so no more joins
follow. Of two joined partitions the larger one keeps its id, and the newer one
if they are of one size; union by size does the same, so that ids are equal too.

*Tuples.* An operator with several outputs and its ``getitem`` nodes must stay
together, so a ``getitem`` moves to the partition of its producer (or out of its
own, if the producer is in none). If the producer is its only input, every path
into the ``getitem`` comes from there, so the move cannot close a cycle. With
more inputs (an index that is a node) it can; then such ``getitem`` nodes stay
where they are.

With ``skip_horizontal_fusion=True`` partitions only grow along edges, which is
described in :mod:`vertical`.

"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from torch.fx import GraphModule, Node
from torch.fx.node import _get_qualified_name
from torch.fx.passes.infra.partitioner import (
    _DependencyViewer,
    CapabilityBasedPartitioner,
    Partition,
)
from torch.fx.passes.operator_support import OperatorSupportBase

from .boundary import constants, fewest_bytes
from .levels import DisjointSets, is_acyclic, levels, tuple_producers
from .vertical import VerticalFusion

logger = logging.getLogger(__name__)


class UnionFindPartitioner(CapabilityBasedPartitioner):
    """Drop-in for torch's ``CapabilityBasedPartitioner``, in linear time.

    Proposes the same partitions with the same ids and in the same order, but

    * takes O(nodes + edges) time and memory instead of quadratic memory and up
      to cubic time, and does not recurse;
    * asks ``operator_support`` once per node, from the last node to the first
      as torch does, and builds the dict of submodules once, not per node;
    * is valid with ``skip_horizontal_fusion=True`` also where torch's proposal
      has a cycle, and ends where torch's loops forever (a ``getitem`` whose
      value and index are in different partitions).

    The graph must be in topological order and is not changed by proposing.

    Args:
        graph_module: The module to partition.
        operator_support: Decides which nodes are supported.
        allows_single_node_partition: Keep partitions with at most one compute
            operator.
        non_compute_ops: Qualified names of operators that are no compute
            operators, beside views and ``getitem``.
        allowed_single_node_partition_ops: Qualified names of operators that may
            be the only compute operator of a partition.
        skip_horizontal_fusion: Join nodes with their direct users only.
        boundary: Where to put a node that several partitions could take.
            ``"latest"`` is torch's choice, the last partition that needs it.
            ``"fewest-bytes"`` moves fewer bytes in and out of partitions (see
            :mod:`boundary`), with no more partitions; constants, views and casts
            go with their consumer, and constants that could only be a partition
            of their own are left out.

    Raises:
        ValueError: ``boundary`` is not known, or is ``"fewest-bytes"`` together
            with ``skip_horizontal_fusion=True``.

    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
        *,
        boundary: str = "latest",
    ) -> None:
        if boundary not in ("latest", "fewest-bytes"):
            raise ValueError(
                f"boundary={boundary!r} is not known: use 'latest' (the placement "
                "of CapabilityBasedPartitioner) or 'fewest-bytes'."
            )
        if boundary == "fewest-bytes" and skip_horizontal_fusion:
            raise ValueError(
                "boundary='fewest-bytes' chooses among the partitions that "
                "horizontal fusion makes: use it with skip_horizontal_fusion=False."
            )
        # The base class' constructor is what is quadratic; it is not called.
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops if non_compute_ops is not None else []
        self.allowed_single_node_partition_ops = (
            allowed_single_node_partition_ops
            if allowed_single_node_partition_ops is not None
            else []
        )
        self.skip_horizontal_fusion = skip_horizontal_fusion
        self.boundary = boundary

    # An attribute of the base class, which a cached property is to its readers.
    @functools.cached_property
    def dependency_viewer(self) -> _DependencyViewer:  # type: ignore[override]
        """Torch's transitive closure, for subclasses that read it (quadratic)."""
        return _DependencyViewer(self.graph_module)

    def propose_partitions(self) -> list[Partition]:
        """Return the partitions of the supported nodes.

        Returns:
            Partitions in the order of their ids, each with its nodes in graph
            order, followed by the ``getitem`` nodes that were moved to it.

        """
        nodes = list(self.graph_module.graph.nodes)
        orders = self._supported(nodes)
        if self.skip_horizontal_fusion:
            fused = VerticalFusion(nodes, orders).sets
        else:
            fused = _fuse_levels(orders, self._levels(nodes, orders))

        partitions = self._finished(nodes, _numbered(orders, fused), _any)
        if partitions is None:
            partitions = self._finished(nodes, _numbered(orders, fused), _one_input)
        assert partitions is not None, "moving plain getitems cannot close a cycle"
        for partition in partitions:
            logger.debug("partition #%s: %s", partition.id, list(partition.nodes))
        return partitions

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Take non-compute operators off the ends of the partitions.

        Removes each node whose operator is in ``non_compute_ops`` and that sees
        only such nodes of its partition on the way to the partition's inputs,
        or only such nodes on the way to its outputs.

        Args:
            partitions: The partitions, which are changed in place.

        """
        names = set(self.non_compute_ops)
        position = {node: i for i, node in enumerate(self.graph_module.graph.nodes)}
        for partition in partitions:
            members = partition.nodes
            movable = [
                node
                for node in sorted(members, key=position.__getitem__)
                if node.op == "call_function" and _name(node) in names
            ]
            leading: set[Node] = set()
            for node in movable:
                if all(_is_outside(i, members, leading) for i in node.all_input_nodes):
                    leading.add(node)
            trailing: set[Node] = set()
            for node in reversed(movable):
                if all(_is_outside(user, members, trailing) for user in node.users):
                    trailing.add(node)
            for node in leading | trailing:
                partition.remove_node(node)

    def _supported(self, nodes: Sequence[Node]) -> dict[Node, int]:
        """Return the supported nodes, last first, with their node orders."""
        submodules = dict(self.graph_module.named_modules())
        is_supported = self.operator_support.is_node_supported
        return {
            node: order
            for order, node in enumerate(reversed(nodes))
            if is_supported(submodules, node)
        }

    def _levels(
        self, nodes: Sequence[Node], orders: dict[Node, int]
    ) -> dict[Node, int]:
        level = levels(nodes, orders)
        if self.boundary == "fewest-bytes":
            level = fewest_bytes(nodes, orders, level)
        return level

    def _finished(
        self,
        nodes: Sequence[Node],
        partitions: list[Partition],
        may_move: Callable[[Node], bool],
    ) -> list[Partition] | None:
        """Move getitems and drop small partitions; None if that closed a cycle."""
        moves = _move_getitems(nodes, partitions, may_move)
        if not self.allows_single_node_partition:
            partitions = [p for p in partitions if self._computes_enough(p)]
        if self.boundary == "fewest-bytes":
            known = constants(nodes)
            partitions = [p for p in partitions if not known.issuperset(p.nodes)]
        if not all(map(_one_input, moves)) and not is_acyclic(
            nodes, _partition_ids(partitions)
        ):
            return None
        return [p for p in partitions if p.size() > 0]

    def _computes_enough(self, partition: Partition) -> bool:
        """Tell whether a partition has two compute operators or an allowed one."""
        views = {"torch.ops.aten.view", "_operator.getitem", *self.non_compute_ops}
        count = 0
        for node in partition.nodes:
            if node.op == "call_function":
                name = _name(node)
                count += name not in views
                count += name in self.allowed_single_node_partition_ops
        return count > 1


def _name(node: Node) -> str:
    return _get_qualified_name(cast(Callable[..., Any], node.target))


def _fuse_levels(orders: dict[Node, int], level: dict[Node, int]) -> DisjointSets:
    """Join the supported nodes of each level, by node order."""
    sets = DisjointSets(len(level))
    root_of: dict[int, int] = {}
    for node, order in orders.items():
        root = root_of.get(level[node])
        root_of[level[node]] = order if root is None else sets.union(order, root)
    return sets


def _numbered(orders: dict[Node, int], sets: DisjointSets) -> list[Partition]:
    """Make partitions of joined nodes; an id counts supported nodes from the end."""
    of_root = {
        order: Partition(id=id)
        for id, order in enumerate(orders.values())
        if sets.find(order) == order
    }
    for node, order in reversed(orders.items()):
        of_root[sets.find(order)].nodes[node] = order
    return list(of_root.values())


def _partition_ids(partitions: Sequence[Partition]) -> dict[Node, int | None]:
    return {node: partition.id for partition in partitions for node in partition.nodes}


def _any(node: Node) -> bool:
    return True


def _one_input(node: Node) -> bool:
    return len(node.all_input_nodes) == 1


def _move_getitems(
    nodes: Sequence[Node],
    partitions: Sequence[Partition],
    may_move: Callable[[Node], bool],
) -> Iterable[Node]:
    """Move getitem nodes to the partition of their producer; return what moved.

    A producer is a node that is used by getitem nodes only. Torch repeats passes
    over the graph until no getitem moves any more, and a moved node goes to the
    end of its partition. Down a chain of getitems each pass moves every node to
    where the one before it was, so the last move of a node is one pass after the
    last move of its producer: one walk finds the moves that remain and, sorted
    by pass, their order.

    If a value and an index claim a getitem for different partitions, torch's
    passes never end. Here it follows the value.

    """
    producers = tuple_producers(nodes)
    if not producers:
        return ()
    home = {node: partition for partition in partitions for node in partition.nodes}
    goal: dict[Node, Partition | None] = {}
    last_pass: dict[Node, int] = {}
    for node in producers:
        target = goal[node] if node in goal else home.get(node)
        passes = last_pass.get(node, 0)
        for getitem in node.users:
            value = getitem.args[0]
            if value is not node and isinstance(value, Node) and value in producers:
                continue
            if may_move(getitem) and (passes or home.get(getitem) is not target):
                goal[getitem] = target
                last_pass[getitem] = passes + 1
    for getitem in sorted(goal, key=last_pass.__getitem__):
        if getitem in home:
            home[getitem].remove_node(getitem)
        target = goal[getitem]
        if target is not None:
            target.add_node(getitem, None)
    return goal


def _is_outside(
    node: Node, members: dict[Node, int | None], removed: set[Node]
) -> bool:
    return node not in members or node in removed or node.op == "placeholder"
