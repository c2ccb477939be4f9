# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The passes behind constant indices, each alone and without a backend."""

import copy
import re

import pytest
import torch
from arm_ext.passes.flatten_index_put_indices_pass import FlattenIndexPutIndicesPass
from arm_ext.passes.narrow_constant_index_pass import (
    CONSTANT_INDEX_REJECT_KEY,
    NarrowConstantIndexPass,
)
from arm_ext.passes.program_constants import ProgramConstants
from arm_ext.passes.rewrite_constant_scatter_pass import RewriteConstantScatterPass
from executorch.exir import EdgeCompileConfig, to_edge
from torch.export import export

X = torch.arange(48.0).reshape(2, 4, 6)


class Model(torch.nn.Module):
    def __init__(self, forward, **constants):
        super().__init__()
        self._forward = forward
        for name, value in constants.items():
            if name.startswith("buffer"):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, x):
        return self._forward(self, x)


def _edge(forward, **constants):
    program = export(Model(forward, **constants), (X,))
    config = EdgeCompileConfig(_check_ir_validity=False)
    return to_edge(program, compile_config=config).exported_program()


def _narrow(program, why_not=lambda node: None):
    constants = ProgramConstants(program, "constant_index")
    return NarrowConstantIndexPass(why_not, constants)(program.graph_module)


def _calls(graph):
    return [n for n in graph.nodes if n.op == "call_function"]


def _names(graph):
    return [n.target.__name__ for n in _calls(graph)]


@pytest.mark.parametrize(
    ("forward", "op"),
    [
        (lambda m, x: x[m.i], "aten.index_select.default"),
        (lambda m, x: x[:, m.i], "aten.index_select.default"),
        (lambda m, x: x[:, :, m.i.reshape(1, 2)], "aten.index.Tensor"),
        (lambda m, x: x[m.i, :, m.i], "aten.index.Tensor"),
        (lambda m, x: x.gather(1, m.i.reshape(1, 2, 1) + 2), "aten.index.Tensor"),
        (
            lambda m, x: x.scatter(1, m.i.reshape(1, 2, 1) + 1, x),
            "aten.index_put.default",
        ),
        (lambda m, x: x.index_copy(1, m.i, x[:, :2]), "aten.index_put.default"),
    ],
)
def test_index_is_int32_and_counts_from_the_front(forward, op):
    program = _edge(forward, i=torch.tensor([1, -1]))
    expected = program.module()(X)
    assert _narrow(program).modified
    program._validate()
    node = next(n for n in _calls(program.graph) if n.target.__name__ == op)
    assert torch.equal(program.module()(X), expected)
    constants = [
        program.constants[name]
        for name in program.graph_signature.lifted_tensor_constants
        if name.startswith("constant_index")
    ]
    assert node.meta["val"].shape == expected.shape
    assert constants and all(c.dtype == torch.int32 for c in constants)
    assert all(int(c.min()) >= 0 for c in constants)


def test_old_constant_goes_when_nobody_uses_it():
    program = _edge(lambda m, x: x[:, [0, -1]])
    _narrow(program)
    assert list(program.constants) == ["constant_index_0"]
    assert _names(program.graph) == ["aten.index_select.default"]


def test_old_constant_stays_for_another_user():
    program = _edge(
        lambda m, x: (x[:, m.buffer], m.buffer + 1), buffer=torch.tensor([1])
    )
    _narrow(program)
    assert program.state_dict["buffer"].dtype == torch.int64
    assert program.module()(X)[1].dtype == torch.int64


def test_a_constant_shared_by_dims_of_different_sizes_gets_copies():
    program = _edge(lambda m, x: (x[m.i], x[:, m.i]), i=torch.tensor([-1]))
    _narrow(program)
    assert sorted(v.item() for v in program.constants.values()) == [1, 3]


def test_equal_indices_share_one_copy():
    program = _edge(lambda m, x: (x[:, m.i], x[:, [3]]), i=torch.tensor([-1]))
    _narrow(program)
    assert len(program.constants) == 1


def test_a_rewrite_that_is_not_taken_is_undone():
    program = _edge(lambda m, x: x[:, m.i], i=torch.tensor([1, -1]))
    before = str(program.graph)
    _narrow(program, lambda node: "not on this device")
    node = _calls(program.graph)[0]
    assert str(program.graph) == before and list(program.constants) == ["i"]
    assert node.meta[CONSTANT_INDEX_REJECT_KEY] == "not on this device"


@pytest.mark.parametrize(
    ("forward", "index", "reason"),
    [
        (lambda m, x: x[:, m.i], [0, 4], "holds 4, out of range"),
        (lambda m, x: x[:, m.i], [-5], "holds -5, out of range"),
        (lambda m, x: x[:, m.i], [2**40], "out of range"),
        (lambda m, x: x[:, m.i], [], "empty"),
        (lambda m, x: x.index_put((m.i,), x[:1]), [1, 1], "more than once"),
        (lambda m, x: x.index_put((m.i,), x[:1]), [1, -1], "more than once"),
        (
            lambda m, x: x.scatter(1, m.i.reshape(1, 2, 1), x),
            [2, -2],
            "out of range|more than once",
        ),
    ],
)
def test_refused_with_a_reason(forward, index, reason):
    program = _edge(forward, i=torch.tensor(index, dtype=torch.int64))
    before = str(program.graph)
    _narrow(program)
    reasons = [n.meta.get(CONSTANT_INDEX_REJECT_KEY) for n in _calls(program.graph)]
    assert str(program.graph) == before
    assert any(r and re.search(reason, r) for r in reasons)


def test_int32_that_is_right_is_left_alone():
    index = torch.tensor([1, 0], dtype=torch.int32)
    program = _edge(lambda m, x: x[m.i], i=index)
    before = str(program.graph)
    assert not _narrow(program).modified and str(program.graph) == before


def test_negative_int32_is_counted_from_the_front():
    index = torch.tensor([1, -1], dtype=torch.int32)
    program = _edge(lambda m, x: x[m.i], i=index)
    _narrow(program)
    assert program.constants["constant_index_0"].tolist() == [1, 1]


def test_runtime_index_is_left_alone():
    program = _edge(lambda m, x: x[x[0, 0, :2].to(torch.int64)])
    assert not _narrow(program).modified


def test_a_mask_gives_static_shapes_and_drops_the_assertions():
    mask = torch.tensor([True, False, True, False])
    program = _edge(
        lambda m, x: torch.relu(x[:, m.i]).reshape(2, -1, 3)[:, [0, -1]], i=mask
    )
    expected = Model(
        lambda m, x: torch.relu(x[:, m.i]).reshape(2, -1, 3)[:, [0, -1]], i=mask
    )(X)
    _narrow(program)
    assert torch.equal(program.module()(X), expected)
    for node in _calls(program.graph):
        assert all(isinstance(size, int) for size in node.meta["val"].shape)
        assert "assert" not in str(node.target)


@pytest.mark.parametrize(
    "forward",
    [
        lambda m, x: x.scatter(1, m.i, x * 2),
        lambda m, x: x.scatter(-1, m.i, 7.0),
        lambda m, x: x.scatter_add(1, m.i, x),
        lambda m, x: x.clone().scatter_(1, m.i, x),
    ],
)
def test_scatter_becomes_index_put_before_annotation(forward):
    index = torch.tensor([[[1, 0, 2], [0, 1, 3]]])
    module = export(Model(forward, i=index), (X,)).module(check_guards=False)
    expected = copy.deepcopy(module)(X)
    result = RewriteConstantScatterPass(tfa_pass=True)(module)
    assert result.modified and "aten.scatter" not in module.code
    assert torch.equal(result.graph_module(X), expected)


@pytest.mark.parametrize(
    "index", [[[[1], [1]]], [[[9], [0]]]], ids=["twice", "out of range"]
)
def test_scatter_that_is_refused_is_left_alone(index):
    model = Model(lambda m, x: x.scatter(1, m.i, x), i=torch.tensor(index))
    module = export(model, (X,)).module(check_guards=False)
    assert not RewriteConstantScatterPass(tfa_pass=True)(module).modified


@pytest.mark.parametrize(
    "indices",
    [
        ([[1], [0]], [[3, 0, 2]]),
        (1, [[3, 0, 2]]),
        ([[1, 0]], [[3, 2]]),
    ],
)
def test_index_put_is_flattened(indices):
    tensors = tuple(torch.tensor(i, dtype=torch.int32) for i in indices)
    program = _edge(lambda m, x: x.index_put(m.i, torch.tensor(9.0)), i=tensors)
    expected = program.module()(X)
    result = FlattenIndexPutIndicesPass()(program.graph_module)
    put = next(
        n for n in _calls(result.graph_module.graph) if "index_put" in str(n.target)
    )
    assert all(index.meta["val"].dim() == 1 for index in put.args[1])
    actual = result.graph_module(*program.constants.values(), X)[0]
    assert torch.equal(actual, expected)


def test_index_put_of_rank_1_is_left_alone():
    index = torch.tensor([1, 0], dtype=torch.int32)
    program = _edge(lambda m, x: x.index_put((m.i,), x), i=index)
    before = program.graph_module.code
    result = FlattenIndexPutIndicesPass()(program.graph_module)
    assert result.graph_module.code == before
