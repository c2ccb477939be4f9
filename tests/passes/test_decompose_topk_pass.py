# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Which lowering topk takes, from how many ops, and in how much memory."""

from collections import Counter

import pytest
import torch
from arm_ext.passes.decompose_topk_pass import BLOCK, DecomposeTopKPass, repeats_argmax
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.specification import TosaLoweringContext
from executorch.exir import to_edge
from torch.export import export

NPU = "TOSA-1.0+INT+int16"
GPU = "TOSA-1.0+FP+INT+int16"


class TopK(torch.nn.Module):
    def __init__(self, k, **options):
        super().__init__()
        self.k, self.options = k, options

    def forward(self, x):
        values, indices = x.topk(self.k, **self.options)
        return values, indices


def decomposed(model, x, spec):
    program = to_edge(export(model, (x,))).exported_program()
    with TosaLoweringContext(TosaSpecification.create_from_string(spec)):
        result = DecomposeTopKPass()(program.graph_module)
    return [n for n in result.graph_module.graph.nodes if n.op == "call_function"]


def names(nodes):
    return Counter(node.target.__name__.split(".")[-2] for node in nodes)


@pytest.mark.parametrize(
    ("size", "k", "spec", "rounds"),
    [
        (256, 8, NPU, 8),
        (256, 19, NPU, 19),
        (256, 20, NPU, 0),
        (16, 1, NPU, 1),
        (16, 2, NPU, 0),
        (4096, 64, NPU, 64),
        (4096, 65, NPU, 0),
        (16, 3, GPU, 3),
        (16, 4, GPU, 0),
        (4096, 8, GPU, 8),
    ],
)
def test_the_cheaper_way_is_taken(size, k, spec, rounds):
    assert repeats_argmax(size, k, spec is NPU) == bool(rounds)
    x = torch.zeros(2, size, dtype=torch.int8)
    found = names(decomposed(TopK(k), x, spec))
    assert found["ARGMAX"] == rounds
    assert found["SCATTER"] == (rounds - 1 if rounds else 1)
    assert found["gt"] == (0 if rounds else -(-size // BLOCK))
    assert found["GATHER"] == 1


@pytest.mark.parametrize(
    ("dtype", "spec"),
    [(torch.int8, NPU), (torch.int32, NPU), (torch.float32, "TOSA-1.0+FP")],
    ids=str,
)
@pytest.mark.parametrize("size", [16, 256, 1000, 4096])
def test_memory_is_bounded(size, dtype, spec):
    x = torch.zeros(3, size, dtype=dtype)
    for node in decomposed(TopK(size), x, spec):
        value = node.meta["val"]
        assert value.numel() * value.element_size() <= 4 * BLOCK * x.numel()


def test_what_is_not_read_is_not_computed():
    class Values(torch.nn.Module):
        def forward(self, x):
            return x.topk(4, dim=0).values

    class Indices(torch.nn.Module):
        def forward(self, x):
            return x.topk(4, dim=0).indices

    x = torch.zeros(32, 5, dtype=torch.int8)
    assert names(decomposed(Indices(), x, NPU))["GATHER"] == 0
    values = names(decomposed(Values(), x, NPU))
    both = names(decomposed(TopK(4, dim=0), x, NPU))
    assert values["GATHER"] == both["GATHER"] == 1


def test_equal_selections_are_computed_once():
    class Twice(torch.nn.Module):
        def forward(self, x):
            return x.topk(4).values, x.topk(4).indices, x.topk(3).indices

    found = names(decomposed(Twice(), torch.zeros(2, 32, dtype=torch.int8), NPU))
    assert found["sum"] == 2
