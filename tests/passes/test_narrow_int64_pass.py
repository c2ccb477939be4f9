# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Where int32 begins and ends, what is left alone, and that the graph stays the same."""

import pytest
import torch
from arm_ext.passes.input_bounds import input_bounds
from arm_ext.passes.narrow_int64_pass import INT64_REJECT_KEY, NarrowInt64Pass
from arm_ext.passes.program_constants import ProgramConstants
from executorch.exir import EdgeCompileConfig, to_edge
from torch.export import export

CAST = "dim_order_ops._to_dim_order_copy.default"
X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
IDS = torch.tensor([3, 0, 5, 1])


class Model(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.words = torch.nn.Embedding(6, 2)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def edge(function, *inputs):
    config = EdgeCompileConfig(_check_ir_validity=False)
    program = export(Model(function), inputs)
    return to_edge(program, compile_config=config).exported_program()


def on_the_cpu(node):
    """Like a partitioner: no int64, and casts to and from it stay outside."""
    if not isinstance(node.meta["val"], torch.Tensor):
        return None
    dtypes = {n.meta["val"].dtype for n in (node, *node.all_input_nodes)}
    computes_index = "argmax" in node.name or "argmax" in str(node.args)
    return "int64" if torch.int64 in dtypes and not computes_index else None


def narrowed(program, why_not=on_the_cpu):
    constants = ProgramConstants(program, "int32_constant")
    return NarrowInt64Pass(why_not, constants)(program.graph_module).modified


def name(node):
    return getattr(node.target, "__name__", str(node.target))


def left(program):
    """The ops that make or read int64, indices that are cast at once left out."""
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    return [name(n) for n in calls if on_the_cpu(n) is not None]


def test_one_cast_for_all_who_read_the_int64():
    program = edge(lambda m, x: (x.argmax(1) % 3, x[x.argmax(1) % 3]), X)
    assert narrowed(program)
    assert left(program) == [CAST]
    program.graph_module.graph.lint()


def test_a_cast_to_int32_and_back():
    def model(m, x):
        i = x.argmax(1) * 3
        there = i.int()
        back = there.long()
        return back * 2 > 5, back, there, (back + 1).int()

    program = edge(model, X)
    assert narrowed(program)
    program.graph_module.graph.lint()
    *specs, _ = program.graph_signature.input_specs
    got = program.graph_module(*(program.constants[s.target] for s in specs), X)
    assert all(map(torch.equal, got, model(None, X)))
    assert left(program) == [CAST]


def test_an_input_that_is_read_as_an_index_enters_by_one_cast():
    program = edge(lambda m, i: (m.words(i) + m.words((i + 1) % 6), i != 0), IDS)
    assert narrowed(program)
    assert left(program) == [CAST]


@pytest.mark.parametrize(
    "function",
    [
        lambda m, i: i + 1,  # of any value
        lambda m, i: i.clamp(0, 9) + 1,  # two casts for one op
        lambda m, i: (i.clamp(0, 9) + 1) * 2**40,
    ],
)
def test_left_as_it_was(function):
    program = edge(function, IDS)
    before = str(program.graph)
    narrowed(program)
    assert str(program.graph) == before
    assert any(INT64_REJECT_KEY in node.meta for node in program.graph.nodes)


def test_more_ops_than_casts_are_worth_them():
    program = edge(lambda m, i: ((i.clamp(0, 9) + 1) * 3 - 2) % 7, IDS)
    assert narrowed(program)
    assert left(program) == ["aten.clamp.default", CAST, CAST]


def test_the_values_that_an_input_may_have():
    def function(m, i, j, k, free):
        return m.words(i), X[j], X[:, k.unsqueeze(0)] + m.words(k)[:, 0], free + i

    program = edge(function, IDS, IDS[:2] % 4, IDS.clone(), IDS + 0)
    bounds = input_bounds(
        program.graph, lambda n: n.name in program.graph_signature.user_inputs
    )
    found = sorted(value.tolist() for value in bounds.values())
    assert found == [[-4, 3], [0, 5], [0, 5]]


def test_an_op_that_is_refused_keeps_its_int64():
    program = edge(lambda m, x: (x.argmax(1) % 3 + 1, x[x.argmax(1) // 2]), X)

    def why_not(node):
        return "no" if "remainder" in node.name else on_the_cpu(node)

    assert narrowed(program, why_not)
    assert "aten.remainder.Scalar" in left(program)
    (refused,) = (
        n.meta[INT64_REJECT_KEY]
        for n in program.graph.nodes
        if n.op == "call_function" and "remainder" in n.name
    )
    assert refused == "no"
    program.graph_module.graph.lint()


def test_running_twice_changes_nothing_more():
    program = edge(lambda m, x: (x.argmax(1) % 3, x[x.argmax(0) // 2]), X)
    assert narrowed(program)
    before = str(program.graph)
    narrowed(program)
    assert str(program.graph) == before
