# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""UnionFindPartitioner against torch's partitioner and independent oracles."""

import itertools
import operator
import subprocess
import sys
import textwrap

import pytest
import torch
from arm_ext.partitioner import UnionFindPartitioner
from hypothesis import given, settings, strategies as st
from partitioner_graphs import (
    any_graph,
    build,
    is_valid,
    longest_alternating_chain,
    NodeSpec,
    partition_ids,
    signature,
    specs,
    stock,
    Support,
)
from torch.fx import Graph, GraphModule, symbolic_trace
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from torch.fx.passes.operator_support import OperatorSupportBase

quick = settings(max_examples=120, deadline=None, derandomize=True)


def ours(graph_module, **options):
    support = Support()
    partitioner = UnionFindPartitioner(graph_module, support, **options)
    return partitioner.propose_partitions(), support.asked


class Targets(OperatorSupportBase):
    """Supports calls of the given targets, or everything that is called."""

    def __init__(self, *targets):
        self.targets = targets

    def is_node_supported(self, submodules, node):
        if not self.targets:
            return node.op not in ("placeholder", "output", "get_attr")
        return node.target in self.targets


# --- Random graphs -----------------------------------------------------------


@quick
@given(any_graph(), st.booleans(), st.booleans())
def test_same_as_stock_where_stock_is_valid(graph_module, vertical, singles):
    options = {
        "skip_horizontal_fusion": vertical,
        "allows_single_node_partition": singles,
        "non_compute_ops": ["torch.abs"],
    }
    expected, asked = stock(graph_module, **options)
    partitions, our_asked = ours(graph_module, **options)

    assert our_asked == asked == list(reversed(graph_module.graph.nodes))
    assert is_valid(graph_module, partitions)
    assert all(isinstance(partition, Partition) for partition in partitions)
    if is_valid(graph_module, expected):
        assert signature(partitions) == signature(expected)
    else:
        assert vertical, "stock with horizontal fusion is valid"


@quick
@given(any_graph(getitems=False))
def test_as_few_as_the_longest_alternating_chain(graph_module):
    partitions, _ = ours(graph_module, allows_single_node_partition=True)
    assert len(partitions) == longest_alternating_chain(graph_module)


@quick
@given(any_graph())
def test_never_more_than_the_chain_with_getitems(graph_module):
    partitions, _ = ours(graph_module, allows_single_node_partition=True)
    assert len(partitions) <= longest_alternating_chain(graph_module)


def set_partitions(items):
    if not items:
        yield []
        return
    first, *rest = items
    for parts in set_partitions(rest):
        yield [[first], *parts]
        for i, part in enumerate(parts):
            yield [*parts[:i], [first, *part], *parts[i + 1 :]]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(specs(most_nodes=9, kinds=("op", "view")).map(build))
def test_as_few_as_brute_force(graph_module):
    supported = [n for n in graph_module.graph.nodes if n.meta.get("supported")]
    supported = supported[:6]
    for node in graph_module.graph.nodes:
        node.meta["supported"] = node in supported
    partitions, _ = ours(graph_module, allows_single_node_partition=True)
    fewest = min(
        len(parts)
        for parts in set_partitions(supported)
        if is_valid(
            graph_module, [Partition(i, nodes) for i, nodes in enumerate(parts)]
        )
    )
    assert len(partitions) == fewest


@quick
@given(any_graph(most_nodes=60))
def test_deterministic(graph_module):
    first, _ = ours(graph_module)
    again, _ = ours(graph_module)
    assert signature(first) == signature(again)


@quick
@given(any_graph(most_nodes=80), st.booleans())
def test_bookends_as_in_stock(graph_module, reverse):
    results = []
    for partitioner_class in (CapabilityBasedPartitioner, UnionFindPartitioner):
        partitioner = partitioner_class(
            graph_module,
            Support(),
            allows_single_node_partition=True,
            non_compute_ops=["torch.abs"],
        )
        partitions = partitioner.propose_partitions()
        if reverse:  # a user's partitions need not be in graph order
            for partition in partitions:
                partition.nodes = dict(reversed(partition.nodes.items()))
        partitioner.remove_bookend_non_compute_ops(partitions)
        results.append(signature(partitions))
    assert results[0] == results[1]


# --- Cases -------------------------------------------------------------------


def two_chains(a, b, c):
    first = a + b
    second = (first + b).relu() + first
    third = second + c
    return second + third.relu(), third


def blocked_by_its_own_user(a, b, c):
    first = a + b
    return (first + first.relu()) + c, first


def no_common_user(a, b, c):
    return a + b, a + c, b + c


def common_user(a, b, c):
    return torch.where(a + b > 0, a + c, b + c)


def only_one_branch(a, b, c):
    first = a + 1
    return first.relu(), first + 2


def no_branch(a, b, c):
    first = a + 1
    return first.relu(), first.relu()


def diamond(a, b, c):
    first = a + 1
    return (first + 2) + (first + b)


def fan_with_a_dependency(a, b, c):
    first = a + 1
    second = first.relu()
    return torch.stack([second, first + second, first.relu()])


def crossing(a, b, c):
    left, right = a + 1, a + 2
    left_relu, right_relu = left.relu(), right.relu()
    return left + right_relu, (right + 3) + (left_relu + right)


def split_inputs(a, b, c):
    first, second, _, _ = a.split(1, 0)
    return (first + b) + (second + c)


def keyword_arguments(a, b, c):
    first = operator.add(a, b)
    return torch.add(input=first.relu(), other=first) + first


CASES = [
    two_chains,
    blocked_by_its_own_user,
    no_common_user,
    common_user,
    only_one_branch,
    no_branch,
    diamond,
    fan_with_a_dependency,
    crossing,
    split_inputs,
    keyword_arguments,
]


@pytest.mark.parametrize("vertical", [False, True])
@pytest.mark.parametrize("function", CASES)
def test_case_as_in_stock_and_the_fused_module_computes_the_same(function, vertical):
    support = Targets(operator.add, operator.getitem, torch.add)
    options = {
        "allows_single_node_partition": True,
        "skip_horizontal_fusion": vertical,
    }
    expected = CapabilityBasedPartitioner(
        symbolic_trace(function), support, **options
    ).propose_partitions()
    traced = symbolic_trace(function)
    partitioner = UnionFindPartitioner(traced, support, **options)
    partitions = partitioner.propose_partitions()
    assert [[n.name for n in p.nodes] for p in partitions] == [
        [n.name for n in p.nodes] for p in expected
    ]

    fused = partitioner.fuse_partitions(partitions, prefix="part_")
    assert sum("part_" in str(n.target) for n in fused.graph.nodes) == len(partitions)
    args = [torch.randn(4) for _ in range(3)]
    torch.testing.assert_close(fused(*args), function(*args))


def test_partition_and_fuse():
    fused = UnionFindPartitioner(
        symbolic_trace(two_chains), Targets(operator.add)
    ).partition_and_fuse()
    args = [torch.randn(4) for _ in range(3)]
    torch.testing.assert_close(fused(*args), two_chains(*args))


def test_vertical_fusion_is_valid_where_stock_has_a_cycle():
    # The first partition is joined with another one behind stock's back, so that
    # stock does not see that add_3 leads from one of its two partitions to the
    # other, and add from the second back to the first.
    graph_module = build(
        [
            NodeSpec("op", (0,), True),
            NodeSpec("op", (2,), True),
            NodeSpec("op", (3,), True),
            NodeSpec("op", (0,), False),
            NodeSpec("op", (2, 3, 0), True),
            NodeSpec("op", (4, 2), True),
        ]
    )
    options = {"skip_horizontal_fusion": True, "allows_single_node_partition": True}
    assert not is_valid(graph_module, stock(graph_module, **options)[0])
    partitions, _ = ours(graph_module, **options)
    assert is_valid(graph_module, partitions)
    names = [sorted(node.name for node in p.nodes) for p in partitions]
    assert sorted(itertools.chain(*names)) == [
        "add",
        "add_1",
        "add_2",
        "add_4",
        "add_5",
    ]


def chain_of_getitems(supported):
    graph = Graph()
    node = graph.placeholder("x")
    for is_supported in supported:
        target = torch.add if node.op == "placeholder" else operator.getitem
        node = graph.call_function(target, (node, 0))
        node.meta["supported"] = is_supported
    graph.output(node)
    return GraphModule(torch.nn.Module(), graph)


@pytest.mark.parametrize("supported", list(itertools.product([False, True], repeat=5)))
def test_chain_of_getitems_follows_its_producer(supported):
    graph_module = chain_of_getitems(supported)
    options = {"allows_single_node_partition": True}
    expected, _ = stock(graph_module, **options)
    partitions, _ = ours(graph_module, **options)
    assert signature(partitions) == signature(expected)


def test_effect_tokens():
    # (token, (first, second)), and the token feeds the next effect.
    graph = Graph()
    x = graph.placeholder("x")
    token = graph.placeholder("token")
    for _ in range(3):
        effect = graph.call_function(torch.add, (token, x))
        token = graph.call_function(operator.getitem, (effect, 0))
        values = graph.call_function(operator.getitem, (effect, 1))
        first = graph.call_function(operator.getitem, (values, 0))
        second = graph.call_function(operator.getitem, (values, 1))
        x = graph.call_function(torch.sub, (first, second))
    graph.output((token, x))
    graph_module = GraphModule(torch.nn.Module(), graph)
    for targets in [(torch.add,), (torch.sub,), (torch.add, torch.sub)]:
        for node in graph.nodes:
            node.meta["supported"] = node.target in targets
        expected, _ = stock(graph_module, allows_single_node_partition=True)
        partitions, _ = ours(graph_module, allows_single_node_partition=True)
        assert signature(partitions) == signature(expected)
        group = partition_ids(partitions)
        for node in graph.nodes:
            if node.target is operator.getitem:
                assert group.get(node) == group.get(node.args[0])


def test_index_and_value_in_different_partitions():
    # Stock moves the getitem to and fro forever.
    graph = Graph()
    x, index = graph.placeholder("x"), graph.placeholder("index")
    value = graph.call_function(torch.add, (x, x))
    item = graph.call_function(operator.getitem, (value, index))
    graph.output(item)
    value.meta["supported"] = True
    partitions, _ = ours(
        GraphModule(torch.nn.Module(), graph), allows_single_node_partition=True
    )
    assert [list(p.nodes) for p in partitions] == [[value, item]]


def test_getitem_stays_where_following_its_producer_would_close_a_cycle():
    # value -> unsupported -> index -> getitem(value, index)
    graph = Graph()
    value = graph.call_function(torch.add, (graph.placeholder("x"), 1))
    index = graph.call_function(torch.relu, (graph.placeholder("y"),))
    item = graph.call_function(operator.getitem, (value, index))
    other = graph.call_function(torch.add, (value, 2))
    blocked = graph.call_function(torch.relu, (item,))
    graph.output((graph.call_function(torch.add, (blocked, index)), other))
    graph_module = GraphModule(torch.nn.Module(), graph)
    value.meta["supported"] = item.meta["supported"] = True
    partitions, _ = ours(graph_module, allows_single_node_partition=True)
    assert is_valid(graph_module, partitions)

    graph = Graph()
    value = graph.call_function(torch.add, (graph.placeholder("x"), 1))
    pair = graph.call_function(operator.getitem, (value, 0))
    index = graph.call_function(torch.relu, (pair,))
    item = graph.call_function(operator.getitem, (value, index))
    graph.output(item)
    graph_module = GraphModule(torch.nn.Module(), graph)
    value.meta["supported"] = True
    partitions, _ = ours(graph_module, allows_single_node_partition=True)
    assert is_valid(graph_module, partitions)
    assert [list(p.nodes) for p in partitions] == [[value, pair]]


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        y = torch.cond(
            x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() - 1, (x + 1,)
        )
        values, indices = torch.topk(y * self.weight, 2, dim=-1)
        rows = y.shape[0] * 2
        return values + rows, indices, y.view(rows, -1)


@pytest.mark.parametrize("vertical", [False, True])
def test_exported_program_with_cond_symints_buffers_and_several_outputs(vertical):
    program = torch.export.export(
        Branches().eval(),
        (torch.randn(3, 4),),
        dynamic_shapes=({0: torch.export.Dim("rows", min=2, max=9)},),
    )
    graph_module = program.graph_module
    targets = {n.target for n in graph_module.graph.nodes if n.op == "call_function"}
    assert len(targets) > 6
    for left_out in [None, *sorted(targets, key=str)]:
        for node in graph_module.graph.nodes:
            node.meta["supported"] = (
                node.op in ("call_function", "get_attr") and node.target != left_out
            )
        for singles in (False, True):
            options = {
                "skip_horizontal_fusion": vertical,
                "allows_single_node_partition": singles,
            }
            expected, _ = stock(graph_module, **options)
            partitions, _ = ours(graph_module, **options)
            assert signature(partitions) == signature(expected)


def test_allowed_single_node_partition_ops():
    traced = symbolic_trace(lambda x: torch.sub(torch.relu(torch.add(x, 1)), 1))
    for allowed in ([], ["torch.add"], ["torch.sub", "torch.add"]):
        for node in traced.graph.nodes:
            node.meta["supported"] = node.target in (torch.add, torch.sub)
        options = {"allowed_single_node_partition_ops": allowed}
        partitions, _ = ours(traced, **options)
        assert len(partitions) == len(allowed)
        assert signature(partitions) == signature(stock(traced, **options)[0])


def test_empty_and_unsupported_graphs():
    graph = Graph()
    graph.output(())
    assert ours(GraphModule(torch.nn.Module(), graph))[0] == []
    assert ours(symbolic_trace(lambda x: x.relu()))[0] == []


def test_support_sees_the_submodules():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.act = torch.nn.ReLU()

        def forward(self, x):
            return self.act(self.linear(x))

    class Modules(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return node.op == "call_module" and isinstance(
                submodules[node.target], torch.nn.Linear
            )

    partitions = UnionFindPartitioner(
        symbolic_trace(Model()), Modules(), True
    ).propose_partitions()
    assert [[n.name for n in p.nodes] for p in partitions] == [["linear"]]


# --- Size --------------------------------------------------------------------


def chain(length, supported):
    graph = Graph()
    node = graph.placeholder("x")
    for i in range(length):
        node = graph.call_function(torch.add, (node, node))
        node.meta["supported"] = supported(i)
    graph.output(node)
    return GraphModule(torch.nn.Module(), graph)


def test_long_alternating_chain_needs_no_recursion():
    # Stock would keep 5e9 pairs of nodes of this graph.
    graph_module = chain(100_000, lambda i: i % 2)
    for vertical in (False, True):
        partitions, _ = ours(
            graph_module,
            allows_single_node_partition=True,
            skip_horizontal_fusion=vertical,
        )
        assert len(partitions) == 50_000


def test_rare_unsupported_nodes_in_a_long_chain():
    """A hundred supported nodes between two that are not, as in most models."""
    graph_module = chain(10_000, lambda i: i % 100 != 50)
    partitions, asked = ours(graph_module)
    assert sorted(p.size() for p in partitions) == [49, 50, *[99] * 99]
    assert len(asked) == len(set(asked))


def test_unsupported_nodes_at_the_borders_separate_nothing():
    """What only reads inputs, or is read by outputs alone, closes no cycle."""
    specs = [NodeSpec("op", (0, 1), False), NodeSpec("op", (2, 2), False)]
    specs += [NodeSpec("op", (0, 1), True)] * 200
    specs += [NodeSpec("op", (back, back + 1), False) for back in range(0, 60, 3)]
    graph_module = build(specs)
    for vertical in (False, True):
        options = {"skip_horizontal_fusion": vertical}
        partitions, _ = ours(graph_module, **options)
        assert signature(partitions) == signature(stock(graph_module, **options)[0])
        assert [p.size() for p in partitions] == [200]


def test_long_chain_of_bookends_needs_no_recursion():
    graph_module = chain(20_000, lambda i: True)
    partitioner = UnionFindPartitioner(
        graph_module, Support(), True, non_compute_ops=["torch.add"]
    )
    partitions = partitioner.propose_partitions()
    partitioner.remove_bookend_non_compute_ops(partitions)
    assert [p.size() for p in partitions] == [0]


def test_long_chain_of_getitems_that_alternate():
    graph_module = chain_of_getitems([i % 2 == 0 for i in range(20_000)])
    partitions, _ = ours(graph_module, allows_single_node_partition=True)
    assert [p.size() for p in partitions] == [20_000]


# --- Without executorch --------------------------------------------------------


def test_usable_with_torch_alone():
    script = """
    import sys, warnings

    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "executorch":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Blocked())
    import operator, torch
    from arm_ext.partitioner import UnionFindPartitioner
    from torch.fx.passes.operator_support import create_op_support

    def model(x):
        y = x + 1
        return (y + y.relu()) + y

    def is_supported(modules, node):
        return node.target is operator.add

    fused = UnionFindPartitioner(
        torch.fx.symbolic_trace(model),
        create_op_support(is_supported),
        allows_single_node_partition=True,
    ).partition_and_fuse()
    x = torch.randn(3)
    torch.testing.assert_close(fused(x), model(x))
    names = [n.target for n in fused.graph.nodes if n.op == "call_module"]
    assert sorted(names) == ["fused_0", "fused_1"], names
    assert not any(m.partition(".")[0] == "executorch" for m in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
