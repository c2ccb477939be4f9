# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What is evaluated at compile time, and what is not."""

import pytest
import torch
from arm_ext.passes.constant_evaluator import (
    ConstantEvaluator,
    module_constant,
    MutableConstant,
    NotConstant,
    program_constant,
)
from torch.export import export


class Model(torch.nn.Module):
    def __init__(self, forward, **constants):
        super().__init__()
        self._forward = forward
        for name, value in constants.items():
            if name.startswith("buffer"):
                self.register_buffer(name, value)
            elif name.startswith("parameter"):
                setattr(self, name, torch.nn.Parameter(value, requires_grad=False))
            else:
                setattr(self, name, value)

    def forward(self, x):
        return self._forward(self, x)


INDEX = torch.tensor([2, 0, -1])
X = torch.arange(12.0).reshape(4, 3)


def _index_node(graph):
    return next(n for n in graph.nodes if "aten.index." in str(n.target)).args[1][0]


def _evaluate(forward, **constants):
    program = export(Model(forward, **constants), (X,)).run_decompositions({})
    evaluator = ConstantEvaluator(lambda node: program_constant(program, node))
    return evaluator.value(_index_node(program.graph))


@pytest.mark.parametrize("name", ["constant", "buffer", "parameter"])
def test_wherever_it_lives(name):
    value = _evaluate(lambda m, x: x[getattr(m, name)], **{name: INDEX})
    assert torch.equal(value, INDEX)


@pytest.mark.parametrize(
    "forward",
    [
        lambda m, x: x[[2, 0, -1]],
        lambda m, x: x[m.constant.clone()],
        lambda m, x: x[(m.constant + 1) - 1],
        lambda m, x: x[torch.arange(3) * 2 - m.constant.sum()],
    ],
    ids=["list", "clone", "sum", "arange"],
)
def test_however_it_is_computed(forward):
    model = Model(forward, constant=INDEX)
    value = _evaluate(forward, constant=INDEX)
    assert torch.equal(X[value], model(X))


def test_a_narrowing_cast_does_not_wrap():
    value = _evaluate(
        lambda m, x: x[m.constant.to(torch.int32)], constant=torch.tensor([2**40])
    )
    assert value.tolist() == [2**40]


def test_an_input_is_not_constant():
    with pytest.raises(NotConstant):
        _evaluate(lambda m, x: x[x[0].to(torch.int64)])


def test_a_random_index_is_not_constant():
    with pytest.raises(NotConstant):
        _evaluate(lambda m, x: x[torch.randint(0, 4, (3,))])


def test_a_buffer_that_is_written_is_mutable():
    def forward(m, x):
        m.buffer.add_(1)
        return x[m.buffer]

    with pytest.raises(MutableConstant, match="'buffer' is written"):
        _evaluate(forward, buffer=torch.tensor([0, 1]))


def test_attributes_of_an_unlifted_module():
    module = export(Model(lambda m, x: x[m.buffer], buffer=INDEX), (X,)).module()
    evaluator = ConstantEvaluator(lambda node: module_constant(module, node))
    assert torch.equal(evaluator.value(_index_node(module.graph)), INDEX)


def test_an_unlifted_buffer_that_is_written_is_mutable():
    def forward(m, x):
        m.buffer.add_(1)
        return x[m.buffer]

    model = Model(forward, buffer=torch.tensor([0, 1]))
    module = export(model, (X,)).run_decompositions({}).module()
    evaluator = ConstantEvaluator(lambda node: module_constant(module, node))
    with pytest.raises(MutableConstant):
        evaluator.value(_index_node(module.graph))
