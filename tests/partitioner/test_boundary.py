# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""boundary="fewest-bytes": valid, no more partitions, less traffic."""

import operator

import pytest
import torch
from arm_ext.partitioner import UnionFindPartitioner
from arm_ext.partitioner.boundary import boundary_bytes, constants, value_bytes
from hypothesis import given, settings
from partitioner_graphs import (
    any_graph,
    build,
    is_valid,
    partition_ids,
    random_specs,
    signature,
    stock,
    Support,
)
from torch.fx import Graph, GraphModule


def fewest_bytes(graph_module):
    return UnionFindPartitioner(
        graph_module,
        Support(),
        allows_single_node_partition=True,
        boundary="fewest-bytes",
    ).propose_partitions()


def edges_between(graph_module, partitions):
    group = partition_ids(partitions)
    return sum(
        node in group and user in group and group[node] != group[user]
        for node in graph_module.graph.nodes
        for user in node.users
    )


@settings(max_examples=120, deadline=None, derandomize=True)
@given(any_graph(most_nodes=120))
def test_valid_with_no_more_partitions_and_no_constants_alone(graph_module):
    partitions = fewest_bytes(graph_module)
    expected, _ = stock(graph_module, allows_single_node_partition=True)
    assert is_valid(graph_module, partitions)
    assert len(partitions) <= len(expected)
    alone = constants(list(graph_module.graph.nodes))
    assert not any(alone.issuperset(p.nodes) for p in partitions)
    assert signature(partitions) == signature(fewest_bytes(graph_module))


@settings(max_examples=120, deadline=None, derandomize=True)
@given(any_graph(most_nodes=120, getitems=False))
def test_same_nodes_and_number_as_stock(graph_module):
    for node in graph_module.graph.nodes:
        if node.op == "get_attr":
            node.meta["supported"] = False
    alone = constants(list(graph_module.graph.nodes))
    expected, _ = stock(graph_module, allows_single_node_partition=True)
    partitions = fewest_bytes(graph_module)
    taken = {node for p in partitions for node in p.nodes}
    missing = {node for p in expected for node in p.nodes} - taken
    assert missing <= alone
    if not missing:
        assert len(partitions) == len(expected)


def test_a_third_fewer_edges_between_partitions_on_random_graphs():
    edges = before = bytes_now = bytes_before = 0
    for seed in range(150):
        graph_module = build(random_specs(seed, most_nodes=80, getitems=False))
        expected, _ = stock(graph_module, allows_single_node_partition=True)
        partitions = fewest_bytes(graph_module)
        before += edges_between(graph_module, expected)
        edges += edges_between(graph_module, partitions)
        nodes = graph_module.graph.nodes
        bytes_before += boundary_bytes(nodes, partition_ids(expected))
        bytes_now += boundary_bytes(nodes, partition_ids(partitions))
    assert before > 300
    assert edges <= 0.67 * before
    assert bytes_now < bytes_before


def graph_with(*shapes):
    graph = Graph()
    return graph, [value(graph.placeholder(f"x{i}"), s) for i, s in enumerate(shapes)]


def value(node, *shape, supported=False, dtype=torch.float32):
    node.meta["val"] = torch.empty(shape, dtype=dtype, device="meta")
    node.meta["supported"] = supported
    return node


def call(graph, target, args, *shape, supported=True, dtype=torch.float32):
    return value(
        graph.call_function(target, args), *shape, supported=supported, dtype=dtype
    )


def partitions_by_name(graph):
    partitions = fewest_bytes(GraphModule(torch.nn.Module(), graph))
    return {node.name: p.id for p in partitions for node in p.nodes}


def test_reduction_stays_with_its_producer():
    # first -> blocked -> last, and a large value of first is reduced for last.
    # Torch reduces beside last, so that the large value crosses.
    graph, (x,) = graph_with(2)
    first = call(graph, torch.add, (x, 1), 1000)
    blocked = call(graph, torch.relu, (first,), 10, supported=False)
    reduced = call(graph, torch.mul, (first, 2), 10)
    last = call(graph, torch.sub, (blocked, reduced), 10)
    graph.output(last)
    group = partitions_by_name(graph)
    assert group["add"] == group["mul"] != group["sub"]
    expected, _ = stock(
        GraphModule(torch.nn.Module(), graph), allows_single_node_partition=True
    )
    before = partition_ids(expected)
    assert before[first] != before[reduced] == before[last]


def test_expansion_stays_with_its_consumer():
    graph, (x,) = graph_with(2)
    first = call(graph, torch.add, (x, 1), 10)
    blocked = call(graph, torch.relu, (first,), 10, supported=False)
    expanded = call(graph, torch.mul, (first, 2), 1000)
    graph.output(call(graph, torch.sub, (blocked, expanded), 10))
    group = partitions_by_name(graph)
    assert group["add"] != group["mul"] == group["sub"]


@pytest.mark.parametrize(
    "target, dtype",
    [
        (torch.ops.aten.view.default, torch.float32),
        (torch.ops.aten._to_copy.default, torch.float64),
        (torch.ops.aten.permute.default, torch.float32),
    ],
)
def test_views_and_casts_go_with_their_consumer(target, dtype):
    graph, (x,) = graph_with(2)
    first = call(graph, torch.add, (x, 1), 10)
    blocked = call(graph, torch.relu, (first,), 10, supported=False)
    moved = call(graph, target, (first,), 10, dtype=dtype)
    graph.output(call(graph, torch.sub, (blocked, moved), 10))
    group = partitions_by_name(graph)
    assert group["add"] != group[moved.name] == group["sub"]


def test_constants_go_with_their_consumer_or_stay_out():
    graph, (x,) = graph_with(2)
    needed = call(graph, torch.ones, (10,), 10)
    first = call(graph, torch.add, (x, 1), 10)
    blocked = call(graph, torch.relu, (first,), 10, supported=False)
    graph.output(call(graph, torch.sub, (blocked, needed), 10))
    group = partitions_by_name(graph)
    assert group["ones"] == group["sub"]

    graph, (x,) = graph_with(2)
    needed = call(graph, torch.ones, (10,), 10)
    blocked = call(graph, torch.relu, (needed,), 10, supported=False)
    graph.output(call(graph, torch.sub, (blocked, x), 10))
    assert list(partitions_by_name(graph)) == ["sub"]


def test_getitems_stay_with_their_producer():
    graph, (x,) = graph_with(2)
    first = call(graph, torch.add, (x, 1), 1000)
    blocked = call(graph, torch.relu, (first,), 10, supported=False)
    pair = call(graph, torch.topk, (first, 5), 5)
    values = call(graph, operator.getitem, (pair, 0), 5, supported=False)
    indices = call(graph, operator.getitem, (pair, 1), 5)
    last = call(graph, torch.sub, (blocked, values), 10)
    graph.output((call(graph, torch.mul, (last, indices), 10),))
    group = partitions_by_name(graph)
    assert group["topk"] == group["getitem"] == group["getitem_1"] == group["add"]
    assert group["sub"] != group["add"]


def test_sizes_of_values():
    graph = Graph()
    node = graph.placeholder("x")
    assert value_bytes(node) == 1
    node.meta["tensor_meta"] = torch.empty(3, 2, dtype=torch.int16)
    assert value_bytes(node) == 12
    node.meta["val"] = (torch.empty(3), torch.empty(2, dtype=torch.int8), 4)
    assert value_bytes(node) == 12 + 2 + 8

    class Model(torch.nn.Module):
        def forward(self, x):
            return x + x.shape[0]

    program = torch.export.export(
        Model(),
        (torch.randn(5, 4),),
        dynamic_shapes=({0: torch.export.Dim("n", min=2, max=9)},),
    )
    sizes = {node.name: value_bytes(node) for node in program.graph.nodes}
    assert sizes.pop("x") == sizes.pop("add") == 5 * 4 * 4
    sizes.pop("output")
    assert set(sizes.values()) == {8}, "what is left are sizes"


def test_unknown_and_impossible_options():
    graph_module = build([])
    with pytest.raises(ValueError, match="'fewest-bytes'"):
        UnionFindPartitioner(graph_module, Support(), boundary="earliest")
    with pytest.raises(ValueError, match="skip_horizontal_fusion=False"):
        UnionFindPartitioner(
            graph_module,
            Support(),
            skip_horizontal_fusion=True,
            boundary="fewest-bytes",
        )
