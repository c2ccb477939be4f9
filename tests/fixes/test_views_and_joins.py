# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What only moves elements is quantized with what it moves, bit-exact."""

import arm_ext
import pytest
import torch
from arm_ext.passes.decompose_views_and_joins_pass import DecomposeViewsAndJoinsPass
from arm_ext.targets import quantize, TARGETS
from lowered import Call, lower_and_run, payload
from torch.export import Dim, export

FIX = "views-and-joins"
U85 = TARGETS["ethos-u85-256"]


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def x(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def moves(y):
    """Every op of the list at least once."""
    return (
        y.mT,
        y[0].T,
        y.adjoint(),
        y.swapaxes(0, 2),
        y.swapdims(1, -1),
        y.narrow(2, -4, 3),
        y.ravel(),
        y.reshape_as(y.flatten(1)),
        y[:1].expand_as(y),
        y[:1].broadcast_to(3, 4, 6),
        torch.atleast_1d(y[0, 0, 0]),
        torch.atleast_1d(y[0, 0]),
        torch.atleast_2d(y[0, 0]),
        torch.atleast_3d(y[0, 0]),
        *y.tensor_split(4, 2)[1:3],
        *y.tensor_split([1, 4], 2),
        y.hsplit(2)[1],
        y.hsplit([1])[1],
        y.vsplit(2)[0],
        y.vsplit([1])[0],
        y.dsplit(3)[2],
        y.dsplit([2])[0],
        torch.hstack([y, y[:, :1]]),
        torch.hstack([y[0, 0, 0], y[0, 0, 1]]),
        torch.vstack([y[0, 0], y[1, 0]]),
        torch.dstack([y, y]),
        torch.column_stack([y[0, 0], y[0, 1]]),
        torch.meshgrid(y[0, 0], y[1, 0], indexing="xy")[1],
        *torch.ops.aten.meshgrid.default([y[0, 0], y[1, 0]]),
        y.rot90(1, (1, 2)),
        y.rot90(2, (0, 2)),
        y.fliplr(),
        y.flipud(),
        torch.channel_shuffle(y[None], 2),
    )


def model(x):
    return moves(x * 1.5)


def exported_ops(module, inputs, **options):
    graph = export(module, inputs, **options).module(check_guards=False).graph
    return {n.target for n in graph.nodes if n.op == "call_function"}


def test_every_op_of_the_list_is_among_the_moves():
    exported = exported_ops(Call(model), (x(2, 4, 6),))
    assert set(DecomposeViewsAndJoinsPass.target_ops) <= exported


@pytest.mark.parametrize("target", ["ethos-u85-256", "ethos-u55-128"])
def test_moves_are_exact(target):
    result = lower_and_run(Call(model), (x(2, 4, 6),), TARGETS[target], "int8")
    # Ethos-U55 reverses height or channels of rank 4 alone.
    left = {"aten.flip.default"} if "u55" in target else set()
    assert set(result.covered.compute_ops) == left and result.error() == 0.0
    # As the model says, to half a step.
    for got, wanted, step in zip(result.got, model(x(2, 4, 6)), result.steps):
        assert (got - wanted).abs().max() <= 0.51 * step


def join(x):
    y = x * 1.5
    return torch.hstack([y, y]).mT * 0.5


def test_stock_leaves_them_in_float_with_the_same_numbers():
    given = (x(2, 4, 6),)
    with arm_ext.patched(disable=[FIX]):
        stock = lower_and_run(Call(join), given, U85, "int8")
    assert set(stock.covered.compute_ops) == {
        "aten.cat.default",
        "aten.permute_copy.default",
    }
    result = lower_and_run(Call(join), given, U85, "int8")
    assert result.one_delegate and result.error() == 0.0
    assert torch.equal(result.got[0], stock.got[0])


def test_a_write_into_a_view_is_seen_through_it():
    def forward(x, z):
        y = x + x
        y.narrow(2, 1, 2).copy_(z)
        return y * 1.5

    given = (x(2, 4, 6), -x(2, 4, 2))
    result = lower_and_run(Call(forward), given, U85, "int8")
    assert result.one_delegate and result.error() <= 1.0
    assert (result.got[0] - forward(*given)).abs().max() <= 3 * result.steps[0]


def decomposed(function, *inputs, **options):
    graph_module = export(Call(function), inputs, **options).module(check_guards=False)
    result = DecomposeViewsAndJoinsPass(tfa_pass=True)(graph_module)
    given = result.graph_module(*inputs)
    torch.testing.assert_close(given, function(*inputs), rtol=0, atol=0)
    return result.modified


def test_other_dtypes_and_layouts():
    every = (torch.arange(48).reshape(2, 4, 6), x(6, 4, 2).permute(2, 1, 0))
    for given in (*every, x(2, 4, 6) > 0, x(2, 4, 6).bfloat16()):
        assert decomposed(lambda y: (*moves(y), y.rot90(0, (1, 2))), given)


def test_what_is_left_whole():
    dynamic = {"inputs": ({0: Dim("n", min=2, max=8)},)}
    assert not decomposed(lambda x: x.mT * 2, x(3, 4, 6), dynamic_shapes=dynamic)
    softplus = torch.nn.functional.softplus
    assert not decomposed(lambda x: softplus(x).std(-1).square(), x(2, 4))


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
