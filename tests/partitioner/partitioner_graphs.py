# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Random FX graphs, and oracles that share no code with the partitioner."""

import operator
import random
from typing import NamedTuple

import networkx as nx
import torch
from hypothesis import strategies as st
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

TARGETS = {"op": torch.add, "view": torch.abs, "getitem": operator.getitem}


class NodeSpec(NamedTuple):
    """One node: how far back its inputs are, and whether it is supported."""

    kind: str
    offsets: tuple[int, ...]
    supported: bool


class Support(OperatorSupportBase):
    """Supports the nodes that are marked; records what it was asked."""

    def __init__(self):
        self.asked = []

    def is_node_supported(self, submodules, node):
        self.asked.append(node)
        return node.meta.get("supported", False)


def build(specs, outputs=None):
    """Make a graph of the nodes, whose unused ones are (mostly) outputs."""
    graph = Graph()
    nodes = [graph.placeholder("x"), graph.placeholder("y")]
    for spec in specs:
        inputs = [nodes[max(len(nodes) - 1 - back, 0)] for back in spec.offsets]
        if spec.kind == "attr":
            node = graph.create_node("get_attr", "weight")
        elif spec.kind == "getitem":
            node = graph.call_function(operator.getitem, (inputs[0], 0))
        else:
            node = graph.call_function(TARGETS[spec.kind], tuple(inputs))
        node.meta["supported"] = spec.supported
        nodes.append(node)
    unused = [node for node in nodes if not node.users]
    # Every third unused node stays without users.
    graph.output(tuple(node for i, node in enumerate(unused) if i % 3 != 1))
    root = torch.nn.Module()
    root.weight = torch.nn.Parameter(torch.ones(2))
    return GraphModule(root, graph)


def random_specs(seed, most_nodes=300, getitems=True):
    rng = random.Random(seed)
    share, reach = rng.uniform(0.1, 0.95), rng.choice([2, 5, 20, 100])
    tuples = rng.choice([0, 0.2, 0.6]) if getitems else 0
    specs = []
    for _ in range(rng.randint(1, most_nodes)):
        offsets = tuple(rng.randrange(reach) for _ in range(rng.randint(1, 3)))
        pick = rng.random()
        kind = "getitem" if pick < tuples else rng.choice(["op"] * 8 + ["view", "attr"])
        specs.append(NodeSpec(kind, offsets, rng.random() < share))
    return specs


def specs(most_nodes=25, kinds=("op", "op", "view", "getitem", "attr")):
    """A strategy for small graphs, which shrink well."""
    node = st.builds(
        NodeSpec,
        st.sampled_from(kinds),
        st.lists(st.integers(0, 8), min_size=1, max_size=3).map(tuple),
        st.booleans(),
    )
    return st.lists(node, min_size=1, max_size=most_nodes)


def any_graph(most_nodes=300, getitems=True):
    """Small graphs that shrink and large ones that do not."""
    kinds = ("op", "op", "view", "getitem", "attr") if getitems else ("op", "view")
    large = st.integers(0, 10**6).map(lambda s: random_specs(s, most_nodes, getitems))
    return st.one_of(specs(kinds=kinds), large).map(build)


def signature(partitions):
    return [(p.id, list(p.nodes.items())) for p in partitions]


def partition_ids(partitions):
    return {node: p.id for p in partitions for node in p.nodes}


def is_valid(graph_module, partitions):
    """No cycle is left when every partition is one node."""
    group = partition_ids(partitions)
    quotient = nx.DiGraph()
    for node in graph_module.graph.nodes:
        for user in node.users:
            ends = group.get(node, node), group.get(user, user)
            if ends[0] != ends[1]:
                quotient.add_edge(*ends)
    return nx.is_directed_acyclic_graph(quotient)


def longest_alternating_chain(graph_module):
    """The most runs of supported nodes on one path: no partitioning has fewer."""
    graph = nx.DiGraph()

    def supported(node: Node):
        return node.meta.get("supported", False)

    for node in graph_module.graph.nodes:
        graph.add_edge("start", node, weight=int(supported(node)))
        for user in node.users:
            graph.add_edge(node, user, weight=supported(user) and not supported(node))
    return nx.dag_longest_path_length(graph, default_weight=0)


def stock(graph_module, **options):
    support = Support()
    partitioner = CapabilityBasedPartitioner(graph_module, support, **options)
    return partitioner.propose_partitions(), support.asked
