# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A warning names the extension that keeps ops on the CPU, and only then."""

import logging
import warnings

import arm_ext
import pytest
import torch
from arm_ext.coverage import coverage
from arm_ext.partitioner.spec_extensions import missing_extensions
from arm_ext.targets import lower, Target, TARGETS
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge
from torch.export import export

ONLY = ("spec-drops-dtype",)
BF16 = torch.bfloat16
FP8 = torch.float8_e4m3fn


class Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def bf16_linear():
    return torch.nn.Linear(8, 4).to(BF16), (torch.randn(2, 8, dtype=BF16),)


def said(module, inputs, target, only=ONLY):
    """Lower and return the program and what was warned of."""
    with warnings.catch_warnings(record=True) as caught, arm_ext.patched(only=only):
        warnings.simplefilter("always")
        edge = lower(module, inputs, target)
    messages = [str(warning.message) for warning in caught]
    return edge, [m for m in messages if "leaves ops on the CPU" in m]


def advised(message):
    """Return the target that the message says to use."""
    spec = message.split('VgfCompileSpec("')[1].split('")')[0]
    return Target("advised", spec)


def test_bf16_is_named_and_the_advice_works(caplog):
    module, inputs = bf16_linear()
    with caplog.at_level(logging.WARNING, logger="arm_ext"):
        edge, messages = said(module, inputs, TARGETS["vgf"])
    assert coverage(edge).delegates == 0
    (message,) = messages
    assert 'VgfCompileSpec("TOSA-1.0+FP+INT+int4+int16+bf16")' in message
    assert "1 bf16" in message
    assert [record.getMessage() for record in caplog.records] == [message]

    edge, messages = said(module, inputs, advised(message))
    assert (coverage(edge).delegates, coverage(edge).compute_ops) == (1, ())
    assert messages == []


def test_stock_says_nothing():
    assert said(*bf16_linear(), TARGETS["vgf"], only=())[1] == []


def test_the_source_line_is_the_models():
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x)  # this line

    _, (message,) = said(Model(), (torch.randn(4, dtype=BF16),), TARGETS["vgf"])
    assert f"{__file__}:" in message and "# this line" in message


def test_every_op_is_counted_and_the_first_are_named():
    def model(x, y):
        for _ in range(6):
            x = torch.relu(x) + 1
        return x, torch.relu(y) + 1

    inputs = torch.randn(4, dtype=BF16), torch.randn(4)
    edge, (message,) = said(Call(model), inputs, TARGETS["vgf"])
    left = coverage(edge).compute_ops
    assert f"({len(left)} bf16)" in message
    assert f"and {len(left) - 3} more" in message


def test_fp8_and_bf16_together():
    def model(x, y):
        return x.to(FP8).to(torch.float16), torch.relu(y)

    inputs = torch.randn(4, dtype=torch.float16), torch.randn(4, dtype=BF16)
    _, (message,) = said(Call(model), inputs, TARGETS["vgf"])
    assert "+bf16+fp8e4m3" in message
    assert "2 fp8e4m3, 1 bf16" in message
    edge, messages = said(Call(model), inputs, advised(message))
    assert (coverage(edge).compute_ops, messages) == ((), [])


def test_no_extension_more_than_needed():
    """int64 is valid in TOSA 1.1, but it would not take the sort."""

    def model(x, y):
        return torch.relu(x), torch.sort(y).values

    inputs = torch.randn(4, dtype=BF16), torch.arange(4)
    target = Target("vgf", "TOSA-1.1+FP+INT")
    _, (message,) = said(Call(model), inputs, target)
    assert 'VgfCompileSpec("TOSA-1.1+FP+INT+bf16")' in message


def test_int64_of_tosa_1_1_is_not_advised():
    """The support checks take int64 there, and then the lowering throws."""
    inputs = (torch.arange(4),)
    assert (
        said(Call(lambda x: x + 1), inputs, Target("vgf", "TOSA-1.1+FP+INT"))[1] == []
    )


@pytest.mark.parametrize(
    "target", ["vgf-int", "ethos-u85-256", "ethos-u55-128"], ids=str
)
def test_nothing_where_the_target_cannot_take_it(target):
    assert said(*bf16_linear(), TARGETS[target])[1] == []


@pytest.mark.parametrize(
    ("model", "value"),
    [
        (torch.relu, torch.randn(4)),
        (lambda x: torch.sort(x).values, torch.randn(4, dtype=BF16)),
        (lambda x: x.view(2, 2), torch.randn(4, dtype=BF16)),
        (torch.relu, torch.randn(4, dtype=torch.float64)),
        (lambda x: x + 1, torch.arange(4)),
    ],
    ids=["delegated", "no such op", "nothing to compute", "fp64", "int64 in 1.0"],
)
def test_nothing_where_no_extension_helps(model, value):
    assert said(Call(model), (value,), TARGETS["vgf"])[1] == []


class Branch(torch.nn.Module):
    def forward(self, flag, x):
        return torch.cond(flag, torch.relu, torch.neg, (x,))


def partitioned(module, inputs, spec):
    edge = to_edge(export(module, inputs))
    partitioner = TOSAPartitioner(TosaCompileSpec(spec))
    program = edge.exported_program()
    partitioner.partition(program)
    return partitioner, program


@pytest.mark.parametrize(
    ("dtype", "spec", "extensions"),
    [
        (torch.float32, "TOSA-1.0+FP", ("cf",)),
        (BF16, "TOSA-1.0+FP", ("bf16", "cf")),
        (BF16, "TOSA-1.0+FP+cf", ("bf16",)),
        (torch.float32, "TOSA-1.0+FP+cf", None),
    ],
    ids=str,
)
def test_control_flow(dtype, spec, extensions):
    inputs = torch.tensor(True), torch.randn(4, dtype=dtype)
    partitioner, program = partitioned(Branch(), inputs, spec)
    missing = missing_extensions(partitioner, program)
    if extensions is None:
        assert missing is None
        return
    assert missing.extensions == extensions
    assert missing.ops[-1].op == "cond"
    again, extended = partitioned(Branch(), inputs, missing.extended_spec)
    assert missing_extensions(again, extended) is None


def test_vgf_control_flow_comes_with_a_caveat():
    inputs = torch.tensor(True), torch.randn(4)
    _, (message,) = said(Branch(), inputs, TARGETS["vgf"])
    assert "+cf" in message
    assert message.endswith("does not compile TOSA control flow.")


def test_the_program_is_left_alone():
    module, inputs = bf16_linear()
    partitioner, program = partitioned(module, inputs, "TOSA-1.0+FP")
    before = [(node.name, dict(node.meta)) for node in program.graph.nodes]
    code = program.graph_module.code
    report = missing_extensions(partitioner, program)
    assert report.extended_spec == "TOSA-1.0+FP+bf16"
    assert [(node.name, dict(node.meta)) for node in program.graph.nodes] == before
    assert program.graph_module.code == code
    assert str(partitioner.tosa_spec) == "TOSA-1.0+FP"


def test_the_delegate_is_the_same_without():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
    inputs = (torch.randn(2, 8),)
    with arm_ext.patched(only=()):
        stock = lower(module, inputs, TARGETS["vgf"]).to_executorch().buffer
    edge, messages = said(module, inputs, TARGETS["vgf"])
    assert messages == []
    assert edge.to_executorch().buffer == stock
