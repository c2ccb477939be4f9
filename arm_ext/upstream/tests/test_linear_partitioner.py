# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

import random
from typing import List, Set, Tuple

import pytest
import torch
from arm_ext.partitioner.capability import UnionFindPartitioner
from arm_ext.partitioner.proposal import Proposal
from executorch.backends.arm.tosa.partitioner import _validate_partition
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from torch.fx.passes.operator_support import create_op_support


def random_graph(seed: int) -> Tuple[GraphModule, Set[Node]]:
    """Return a graph of adds, and those of them that the backend takes."""
    rng = random.Random(seed)
    graph = Graph()
    nodes = [graph.placeholder("x")]
    for _ in range(40):
        args = tuple(rng.choice(nodes[-12:]) for _ in range(2))
        nodes.append(graph.call_function(torch.add, args))
    graph.output(tuple(node for node in nodes if not node.users))
    supported = {node for node in nodes[1:] if rng.random() < 0.7}
    return GraphModule(torch.nn.Module(), graph), supported


def propose(partitioner_class, seed: int) -> Tuple[GraphModule, List[Partition]]:
    module, supported = random_graph(seed)
    support = create_op_support(lambda _, node: node in supported)
    partitioner = partitioner_class(module, support, allows_single_node_partition=True)
    return module, partitioner.propose_partitions()


@pytest.mark.parametrize("seed", range(20))
def test_partitions_are_those_of_torch(seed):
    ours, theirs = (
        {partition.id: {node.name for node in partition.nodes} for partition in found}
        for _, found in (
            propose(UnionFindPartitioner, seed),
            propose(CapabilityBasedPartitioner, seed),
        )
    )
    assert ours == theirs


@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_a_detagged_partition_are_valid(seed):
    module, partitions = propose(UnionFindPartitioner, seed)
    proposal = Proposal(module, partitions)
    for number, partition in enumerate(partitions):
        for node in partition.nodes:
            node.meta["delegation_tag"] = f"tag{number}"
        assert set(proposal.tagged(f"tag{number}")) == set(partition.nodes)
        left = set(list(partition.nodes)[::2])
        assert proposal.is_valid(left) is _validate_partition(left)
        pieces = proposal.fewest_pieces(left)
        assert set().union(*pieces) == left and all(map(_validate_partition, pieces))
