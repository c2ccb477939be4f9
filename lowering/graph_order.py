# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Sort a graph topologically in place.

``torch.fx.passes.tools_common.legalize_graph`` copies a graph, node by node, in
topological order. ExecuTorch calls it after each partition that it cuts out of a
program, so that most of the copies are of nodes that stay where they are.

:func:`legalize_graph` moves the nodes instead, and only if there are any to move.
The graph ends in the state that the copy would have: the same order of nodes and
of each node's users, and the same names given and still to be given.

"""

from __future__ import annotations

import operator
from collections import deque

from torch.fx import Graph, GraphModule, Node
from torch.fx.graph import _Namespace
from torch.fx.passes.tools_common import legalize_graph as _copy_in_order


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Sort the graph of a module topologically; same result as torch's function.

    Graphs with arithmetic on symbols or with assertions, which torch moves to the
    front, are left to torch.

    Args:
        gm (GraphModule): The module; it is changed and recompiled.

    Raises:
        RuntimeError: The graph has a cycle.

    """
    nodes = list(gm.graph.nodes)
    if any(map(_may_be_prioritized, nodes)):
        return _copy_in_order(gm)
    order = topological_order(nodes)
    names = _Namespace()
    if len(order) < len(nodes) or any(
        names.create_name(node.name, node) != node.name for node in order
    ):
        return _copy_in_order(gm)
    graph = gm.graph
    if order != nodes:
        _move(graph, order)
    _sort_users(order)
    graph._graph_namespace = names
    graph._insert = graph._root.prepend
    gm.recompile()
    return gm


def topological_order(nodes: list[Node]) -> list[Node]:
    """Return the nodes in the order in which their last input is reached.

    Nodes without inputs come first. The nodes of a cycle, and those after it, are
    missing.

    """
    waiting_for = dict.fromkeys(nodes, 0)
    for node in nodes:
        for user in node.users:
            waiting_for[user] += 1
    ready = deque(node for node in nodes if not waiting_for[node])
    order = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for user in node.users:
            waiting_for[user] -= 1
            if not waiting_for[user]:
                ready.append(user)
    return order


def _may_be_prioritized(node: Node) -> bool:
    if node.op != "call_function" or node.target is operator.getitem:
        return False
    if getattr(node.target, "__module__", None) == "_operator":
        return True
    name = getattr(node.target, "__name__", "")
    return "assert" in name or "constrain" in name or "scalar_tensor" in name


def _move(graph: Graph, order: list[Node]) -> None:
    for node in order:
        graph._root.prepend(node)  # the root closes the ring: this is its end
    table = graph._find_nodes_lookup_table
    for node in order:
        table.remove(node)
        table.insert(node)


def _sort_users(order: list[Node]) -> None:
    position = {node: index for index, node in enumerate(order)}
    for node in order:
        if len(node.users) > 1:
            users = sorted(node.users, key=position.__getitem__)
            node.users.clear()
            node.users.update(dict.fromkeys(users))
