# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The search for the nodes that keep a partition from being lowered."""

import pytest
import torch
from arm_ext.lowering.fallback import alike_in, Failure, offenders

NODES = tuple(f"n{i}" for i in range(100))
ERROR = RuntimeError("no")


class Compiler:
    """Rejects sets of nodes that hold all of one of ``bad``; counts its runs."""

    def __init__(self, *bad, names=()):
        self.bad = [set(nodes) for nodes in bad]
        self.names = names
        self.runs = 0

    def __call__(self, nodes):
        self.runs += 1
        if any(bad <= set(nodes) for bad in self.bad):
            return Failure(tuple(nodes), ERROR, self.named(nodes))
        return None

    def named(self, nodes):
        return tuple(name for name in self.names if name in nodes)[:1]

    def search(self, **options):
        failure = Failure(NODES, ERROR, self.named(NODES))
        return offenders(failure, self, **options)


@pytest.mark.parametrize("position", [0, 1, 49, 98, 99])
def test_one_node_is_found_in_logarithmic_time(position):
    compiler = Compiler([NODES[position]])
    assert compiler.search() == {NODES[position]: ERROR}
    assert compiler.runs <= 8


def test_several_nodes_are_found():
    compiler = Compiler(["n3"], ["n70"])
    assert compiler.search().keys() == {"n3", "n70"}


def test_of_nodes_that_do_not_go_together_one_is_left_out():
    assert Compiler(["n3", "n70"]).search().keys() == {"n70"}


def test_a_named_node_costs_one_trial():
    compiler = Compiler(["n42"], names=["n42"])
    assert compiler.search().keys() == {"n42"}
    assert compiler.runs == 1


def test_a_node_that_is_named_wrongly_is_kept():
    assert Compiler(["n42"], names=["n7"]).search().keys() == {"n42"}


def test_after_two_all_that_are_alike_are_left_out():
    every_third = NODES[::3]
    compiler = Compiler(*([name] for name in every_third))
    found = compiler.search(alike=lambda n: every_third if n in every_third else [n])
    assert found.keys() == set(every_third)
    assert compiler.runs <= 16


def test_too_many_are_all_left_out():
    compiler = Compiler(*([name] for name in NODES[::2]))
    assert compiler.search().keys() == set(NODES)
    assert compiler.runs <= 4 * 8


def test_alike_are_one_op_on_one_shape_and_dtype():
    class Adds(torch.nn.Module):
        def forward(self, x, y, z):
            return x + 1, y + 1, y + 2, x.sin(), z + 1, (x + 1).sum()

    inputs = (torch.ones(2), torch.ones(2), torch.ones(3))
    inputs = (inputs[0], inputs[1] * 2, inputs[2])
    graph = torch.export.export(Adds(), inputs).graph
    alike = alike_in(graph)
    assert set(alike("add")) == {"add", "add_1", "add_4"}
    assert alike("unknown") == ("unknown",)
