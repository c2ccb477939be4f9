# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Sorting in place leaves a graph as torch's copy in topological order does."""

import copy
import operator
import random

import pytest
import torch
from arm_ext.lowering.graph_order import legalize_graph
from torch.fx import Graph, GraphModule
from torch.fx.passes.tools_common import legalize_graph as copy_in_order


def random_module(seed, unsorted=True):
    """A random graph, with nodes moved so that it is not in topological order."""
    rng = random.Random(seed)
    graph = Graph()
    values = [graph.placeholder(f"x_{i}") for i in range(3)]
    for _ in range(20):
        inputs = rng.sample(values, 2)
        target = rng.choice([torch.add, torch.mul, torch.sub])
        values.append(graph.call_function(target, tuple(inputs)))
        if rng.random() < 0.3:
            values.append(graph.call_function(operator.getitem, (values[-1], 0)))
    unused = [value for value in values if not value.users]
    output = graph.output(tuple(unused))
    if unsorted:
        for node in rng.sample(values[3:], 8):
            output.prepend(node)
        for node in rng.sample(values[3:], 4):
            values[2].append(node)
    return GraphModule(torch.nn.Module(), graph)


def state(module):
    graph = module.graph
    return {
        "nodes": [(n.op, n.name, str(n.args)) for n in graph.nodes],
        "backwards": [n.name for n in reversed(graph.nodes)],
        "users": [[u.name for u in n.users] for n in graph.nodes],
        "found": {
            target: [
                n.name
                for n in graph.find_nodes(op="call_function", target=target, sort=False)
            ]
            for target in (torch.add, torch.mul, operator.getitem)
        },
        "sorted": sorted(graph.nodes) == list(graph.nodes),
        "length": len(graph.nodes),
        "code": module.code,
        "next names": [
            graph._graph_namespace.create_name(name, None)
            for name in ("add", "add_3", "getitem", "mul", "x", "new", "sub_1")
        ],
    }


@pytest.mark.parametrize("seed", range(40))
def test_same_as_torch(seed):
    ours, torchs = random_module(seed), random_module(seed)
    assert legalize_graph(ours) is ours
    copy_in_order(torchs)
    ours.graph.lint()
    assert state(ours) == state(torchs)


@pytest.mark.parametrize("seed", range(10))
def test_same_as_torch_while_the_graph_changes(seed):
    """Names of erased nodes are free again, users are in the order of the nodes."""
    states = []
    for sort in (legalize_graph, copy_in_order):
        module = random_module(seed)
        for step in range(4):
            nodes = [n for n in module.graph.nodes if n.op == "call_function"]
            old = nodes[(seed + 3 * step) % len(nodes)]
            with module.graph.inserting_after(old):
                new = module.graph.call_function(torch.neg, old.args[:1])
            old.replace_all_uses_with(new)
            module.graph.erase_node(old)
            sort(module)
            new = next(n for n in module.graph.nodes if n.name == new.name)
            with module.graph.inserting_before(module.graph.output_node()):
                module.graph.call_function(torch.add, (new, new))
        module.recompile()
        states.append(state(module))
    assert states[0] == states[1]


def test_nodes_are_not_copied():
    module = random_module(0)
    nodes = set(module.graph.nodes)
    legalize_graph(module)
    assert set(module.graph.nodes) == nodes


def test_new_nodes_go_to_the_end():
    module = random_module(0)
    legalize_graph(module)
    assert list(module.graph.nodes)[-1].op == "output"
    new = module.graph.call_function(torch.neg, (next(iter(module.graph.nodes)),))
    assert list(module.graph.nodes)[-1] is new


def test_cycle():
    module = random_module(1, unsorted=False)
    first, second = [n for n in module.graph.nodes if n.op == "call_function"][:2]
    first.args = (second, second)
    second.args = (first, first)
    with pytest.raises(RuntimeError, match="cycles"):
        legalize_graph(module)


def test_symbolic_arithmetic_is_left_to_torch():
    graph = Graph()
    x = graph.placeholder("x")
    late = graph.call_function(torch.neg, (x,))
    early = graph.call_function(operator.add, (x, 1))
    graph.output((late, early))
    ours = GraphModule(torch.nn.Module(), graph)
    torchs = copy.deepcopy(ours)
    legalize_graph(ours)
    copy_in_order(torchs)
    assert [n.name for n in ours.graph.nodes] == [n.name for n in torchs.graph.nodes]
    assert [n.name for n in ours.graph.nodes] == ["x", "add", "neg", "output"]
