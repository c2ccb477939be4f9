# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The functions over graphs, against networkx."""

import networkx as nx
import torch
from arm_ext.partitioner.levels import components, DisjointSets, is_acyclic, levels
from hypothesis import given, settings, strategies as st
from partitioner_graphs import any_graph, is_valid
from torch.fx.passes.infra.partitioner import Partition

quick = settings(max_examples=100, deadline=None, derandomize=True)


def marked(graph_module):
    return {n for n in graph_module.graph.nodes if n.meta.get("supported")}


def as_partitions(group):
    keys = sorted(set(group.values()), key=str)
    return [Partition(k, [n for n in group if group[n] == k]) for k in keys]


@quick
@given(any_graph(most_nodes=80), st.randoms(use_true_random=False))
def test_acyclic_as_networkx_says(graph_module, rng):
    nodes = list(graph_module.graph.nodes)
    count = rng.randint(1, 6)
    group = {node: rng.randrange(count) for node in nodes if rng.random() < 0.5}
    assert is_acyclic(nodes, group) == is_valid(graph_module, as_partitions(group))


@quick
@given(any_graph(most_nodes=80))
def test_components_as_networkx_says(graph_module):
    nodes = list(graph_module.graph.nodes)
    level = levels(nodes, marked(graph_module))
    group = {node: level[node] for node in marked(graph_module)}
    graph = nx.Graph()
    graph.add_nodes_from(group)
    graph.add_edges_from(
        (node, user)
        for node in group
        for user in node.users
        if user in group and group[user] == group[node]
    )
    found = components(nodes, group)
    pieces = {}
    for node, number in found.items():
        pieces.setdefault(number, set()).add(node)
    assert list(pieces) == list(range(len(pieces)))
    assert {frozenset(piece) for piece in pieces.values()} == {
        frozenset(piece) for piece in nx.connected_components(graph)
    }


@quick
@given(any_graph(most_nodes=60), st.randoms(use_true_random=False))
def test_cutting_partitions_anew_gives_valid_and_fewest_pieces(graph_module, rng):
    nodes = list(graph_module.graph.nodes)
    level = levels(nodes, marked(graph_module))
    group = {node: level[node] for node in marked(graph_module)}
    left = {node for node in group if rng.random() < 0.7}

    sub_level = levels(nodes, left, group)
    pieces = {node: (group[node], sub_level[node]) for node in left}
    assert is_valid(graph_module, as_partitions(pieces))
    for key in set(group.values()):
        members = [node for node in left if group[node] == key]
        whole = is_valid(graph_module, [Partition(0, members)])
        assert whole == (len({pieces[node] for node in members}) <= 1)


def test_the_larger_set_keeps_its_representative():
    sets = DisjointSets(5)
    assert sets.union(3, 1) == 3
    assert sets.union(0, 3) == 3
    assert sets.union(2, 4) == 2
    assert sets.union(2, 3) == 3
    assert {sets.find(item) for item in range(5)} == {3}


def test_a_node_without_users_is_on_level_0():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    unused = graph.call_function(torch.add, (x, 1))
    output = graph.output(x)
    nodes = list(graph.nodes)
    assert levels(nodes, {unused}) == {output: 0, unused: 0, x: 1}
    assert components(nodes, {unused: "a", x: "b"}) == {x: 0, unused: 1}
