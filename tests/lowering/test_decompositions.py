# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A skipped decomposition is one that would have reproduced the program."""

import pytest
import torch
from arm_ext.lowering import decompositions
from torch.export import Dim, export


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 3)
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x):
        return torch.softmax(self.linear(self.conv(x).flatten(1)), -1)


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        return x + self.count


class Branching(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


class Returning(torch.nn.Module):
    def forward(self, x):
        return x, x + 1


def listing(program):
    return [
        (node.op, node.name, node.target, str(node.args), str(node.kwargs))
        for node in program.graph.nodes
    ], str(program.graph_signature)


def traced(module, shape, **options):
    program = export(module.eval(), (torch.ones(shape),), **options)
    return program.run_decompositions({})


def test_settled_program_is_reproduced_by_another_trace():
    program = traced(Classifier(), (1, 1, 4, 4))
    assert decompositions.is_settled(program, {})
    assert listing(program.run_decompositions({})) == listing(program)


def test_what_is_in_the_table_is_decomposed():
    program = traced(Classifier(), (1, 1, 4, 4))
    table = {torch.ops.aten.conv2d.default: None}
    assert not decompositions.is_settled(program, table)


@pytest.mark.parametrize("module", [Counting(), Branching(), Returning()])
def test_anything_but_plain_calls_is_traced(module):
    assert not decompositions.is_settled(traced(module, (2,)), {})


def test_symbolic_shapes_are_traced():
    program = traced(torch.nn.ReLU(), (3, 2), dynamic_shapes=({0: Dim("n", min=2)},))
    assert not decompositions.is_settled(program, {})


def test_only_programs_traced_in_the_block_are_skipped():
    program = traced(torch.nn.ReLU(), (2,))
    runs = []

    def run():
        runs.append(1)
        return program.run_decompositions({})

    decompositions.run_decompositions(program, {}, run)
    with decompositions.skipping():
        first = decompositions.run_decompositions(program, {}, run)
        assert decompositions.run_decompositions(first, {}, run) is first
        decompositions.run_decompositions(first, None, run)
    decompositions.run_decompositions(first, {}, run)
    assert len(runs) == 4
