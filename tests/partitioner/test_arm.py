# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The steps after the proposal, against a walk of the whole graph and networkx."""

import random

import networkx
import torch
from arm_ext.partitioner.arm import (
    current_proposal,
    proposal_scope,
    RecordingPartitioner,
)
from hypothesis import given, settings, strategies
from torch.fx import Graph, GraphModule
from torch.fx.passes.operator_support import create_op_support


def random_proposal(seed, size=40):
    """A random DAG with random support, and the proposal for it."""
    rng = random.Random(seed)
    graph = Graph()
    nodes = [graph.placeholder("x")]
    for _ in range(size):
        args = [rng.choice(nodes[-12:]) for _ in range(2)]
        nodes.append(graph.call_function(torch.add, tuple(args)))
    graph.output(tuple(node for node in nodes if not node.users))
    supported = {n for n in nodes[1:] if rng.random() < 0.7}
    module = GraphModule(torch.nn.Module(), graph)
    support = create_op_support(lambda _, node: node in supported)
    with proposal_scope():
        partitions = RecordingPartitioner(
            module, support, allows_single_node_partition=True
        ).propose_partitions()
        return rng, module, partitions, current_proposal()


def reaches_itself(nodes):
    """Walk everything downstream of ``nodes``: is one of them there again?"""
    pending = [user for node in nodes for user in node.users if user not in nodes]
    seen = set()
    while pending:
        node = pending.pop()
        if node in nodes:
            return True
        if node not in seen:
            seen.add(node)
            pending.extend(node.users)
    return False


def quotient(module, groups):
    """The graph in which every group of nodes is one vertex."""
    vertex = {node: i for i, group in enumerate(groups) for node in group}
    result = networkx.DiGraph()
    for node in module.graph.nodes:
        for user in node.users:
            edge = vertex.get(node, node), vertex.get(user, user)
            if edge[0] != edge[1]:
                result.add_edge(*edge)
    return result


def alternations(partition, left):
    """Fewest pieces that any valid cut of ``left`` needs: its longest chain."""
    chain = {}
    order = {node: i for i, node in enumerate(next(iter(left)).graph.nodes)}
    for node in sorted(partition, key=order.get, reverse=True):
        chain[node] = max(
            (
                chain[user] + (user in left and node not in left)
                for user in node.users
                if user in partition
            ),
            default=0,
        )
    return 1 + max(chain[node] for node in left)


@settings(max_examples=300, deadline=None)
@given(strategies.integers(0, 2**32))
def test_cut_after_detagging(seed):
    rng, module, partitions, proposal = random_proposal(seed)
    everything = []
    for number, partition in enumerate(partitions):
        for node in partition.nodes:
            node.meta["delegation_tag"] = f"tag{number}"
        in_graph_order = [n for n in module.graph.nodes if n in partition.nodes]
        assert proposal.tagged(f"tag{number}") == in_graph_order
        left = {node for node in partition.nodes if rng.random() < 0.7}
        assert proposal.is_valid(left) is not reaches_itself(left)
        pieces = proposal.fewest_pieces(left)
        assert set().union(*pieces) == left and sum(map(len, pieces)) == len(left)
        assert len(pieces) == (alternations(partition.nodes, left) if left else 0)
        everything += pieces
    assert networkx.is_directed_acyclic_graph(quotient(module, everything))


def test_partitions_are_found_in_order_and_more_than_once():
    _, module, partitions, proposal = random_proposal(7)
    for number, partition in enumerate(partitions):
        for node in partition.nodes:
            node.meta["delegation_tag"] = f"tag{number}"
        first = proposal.tagged(f"tag{number}")
        assert first and proposal.tagged(f"tag{number}") == first
    assert proposal.tagged("no such tag") == []


def test_scope_is_left_behind():
    assert current_proposal() is None
    with proposal_scope():
        assert current_proposal() is None
        with proposal_scope():
            pass
    assert current_proposal() is None
