# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What PyTorch makes of other ops is quantized as those are."""

import arm_ext
import pytest
import torch
from arm_ext.targets import quantize, TARGETS
from lowered import Call, lower_and_run, payload
from torch.export import Dim, export
from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

FIX = "composite-ops"
U85 = TARGETS["ethos-u85-256"]


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def x(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def moves(x):
    """Views, joins and splits: all share the scale of ``y``."""
    y = x * 1.5
    return (
        torch.hstack([y, y.swapaxes(1, 2).reshape(2, 4, 6)]),
        torch.dstack([y, y]),
        y.mT,
        y[0].T,
        y.narrow(2, -4, 3),
        y.ravel(),
        y.reshape_as(y.flatten(1)),
        y[:1].expand_as(y),
        *y.tensor_split(4, 2)[1:3],
        torch.atleast_2d(y[0, 0]),
        torch.meshgrid(y[0, 0], y[1, 0], indexing="ij")[1],
        torch.channel_shuffle(y[None], 2),
    )


def few(x):
    y = x * 1.5
    return y.std(-1) * 0.5, torch.nn.functional.relu6(y) * 0.5


def arithmetic(x):
    y, z = x * 1.5, x.rot90(2, (0, 1)) + 0.5
    return (
        *few(x),
        y.square() * 0.5,
        torch.outer(y[0, 0], y[0, 1]) * 0.5,
        torch.divide(y, z.abs() + 1),
        torch.max(y, z) * 0.5,
        torch.addcmul(y, y, z),
        torch.baddbmm(y[:, :, :4], y, z.mT),
        torch.nn.functional.normalize(y, dim=-1) * 0.5,
        torch.where(torch.greater(y.clip(-0.5, 1.0), z), y, z),
    )


def steps(result):
    """The largest difference of each output, in its own steps."""
    return [
        ((got.double() - wanted.double()).abs().max() / step).item()
        for got, wanted, step in zip(result.got, result.wanted, result.steps)
    ]


@pytest.mark.parametrize("target", ["ethos-u85-256", "ethos-u55-128"])
def test_moves_are_exact(target):
    result = lower_and_run(Call(moves), (x(2, 4, 6),), TARGETS[target], "int8")
    assert result.one_delegate and steps(result) == [0.0] * len(result.got)


@pytest.mark.parametrize(
    ("function", "target", "quantization"),
    [(arithmetic, "ethos-u85-256", "int8"), (few, "vgf-int", "a16w8")],
)
def test_arithmetic_is_within_one_step(function, target, quantization):
    given = (x(2, 4, 6),)
    result = lower_and_run(Call(function), given, TARGETS[target], quantization)
    assert result.one_delegate and max(steps(result)) <= 1.0


def test_stock_leaves_them_in_float():
    def forward(x):
        y = x * 1.5
        return torch.hstack([y, y]).mT * 0.5

    with arm_ext.patched(disable=[FIX]):
        stock = lower_and_run(Call(forward), (x(2, 4, 6),), U85, "int8")
    assert {"aten.cat.default", "aten.permute_copy.default"} <= set(
        stock.covered.compute_ops
    )
    result = lower_and_run(Call(forward), (x(2, 4, 6),), U85, "int8")
    assert result.one_delegate and result.error() == 0.0


def annotated(model, inputs, **options):
    """The ops of a program that is prepared for quantization."""
    program = export(Call(model), inputs, **options).module(check_guards=False)
    prepared = prepare_pt2e(program, U85.quantizer("int8"))
    return {n.target for n in prepared.graph.nodes if n.op == "call_function"}


def test_what_is_left_whole():
    def forward(x):
        y = x * 1.5  # a part of each: min or max without an index, and isinf
        return y.prod(1), y.logsumexp(1), 1 - y

    aten = torch.ops.aten
    assert {aten.prod.dim_int, aten.logsumexp.default} <= annotated(forward, (x(2, 4),))
    dynamic = {"inputs": ({0: Dim("n", min=2, max=8)},)}
    shown = annotated(lambda x: x.mT * 2, (x(3, 4, 6),), dynamic_shapes=dynamic)
    assert aten.mT.default in shown


def test_other_programs_are_byte_identical():
    def forward(linear, x):
        y = torch.softmax(linear(x), -1).transpose(1, 2).reshape(2, -1)
        return torch.cat([y, y * 2], 1).clamp(0, 0.5)

    torch.manual_seed(0)
    module, given = Call(forward, torch.nn.Linear(6, 6)), (x(2, 4, 6),)
    payloads = []
    for disable in ([], [FIX]):
        with arm_ext.patched(disable=disable):
            payloads.append(payload(quantize(module, given, U85), given, U85))
    assert payloads[0] == payloads[1]
