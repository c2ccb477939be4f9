# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""An integer that is quantized is read in the delegate, by a RESCALE."""

import math

import arm_ext
import pytest
import torch
from arm_ext.targets import quantize, TARGETS
from lowered import Call, lower_and_run, payload

FIX = "int-to-float-cast"
U85 = TARGETS["ethos-u85-256"]
CAST = "dim_order_ops._to_dim_order_copy.default"


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def x(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def rotary(present, x):
    """Positions of what is present, to angles, as a language model has them."""
    positions = torch.cumsum(present, dim=1) - 1
    frequencies = 10000.0 ** (-torch.arange(4) / 4)
    angles = positions.to(torch.float32)[..., None] * frequencies
    return x * torch.cos(angles) + torch.sin(angles)


def present():
    return torch.arange(6)[None] != 4


@pytest.mark.parametrize("target", ["ethos-u85-256", "vgf-int"])
def test_positions_are_one_delegate(target):
    given = (present(), x(1, 6, 4))
    result = lower_and_run(Call(rotary), given, TARGETS[target], "int8")
    assert result.one_delegate and result.error() <= 1.0


def test_stock_splits_the_graph():
    given = (present(), x(1, 6, 4))
    with arm_ext.patched(disable=[FIX]):
        stock = lower_and_run(Call(rotary), given, U85, "int8")
    assert stock.covered.delegates == 2 and stock.covered.compute_ops == (CAST,)
    with arm_ext.patched(only=()):
        stock = lower_and_run(Call(rotary), given, U85, "int8")
    assert stock.covered.delegates == 2 and CAST in stock.covered.compute_ops


def test_int16_activations():
    given = (present(), x(1, 6, 4))
    module = quantize(Call(rotary), given, U85, "a16w8")
    result = lower_and_run(module, given, U85)
    with arm_ext.patched(disable=[FIX]):
        stock = lower_and_run(module, given, U85)
    assert result.one_delegate and torch.equal(result.got[0], stock.got[0])


@pytest.mark.parametrize("target", ["ethos-u85-256", "ethos-u55-128"])
def test_every_byte_of_an_image(target):
    def forward(image):
        return image.float() * 0.5

    image = torch.arange(256, dtype=torch.uint8).reshape(1, 1, 16, 16)
    result = lower_and_run(Call(forward), (image,), TARGETS[target], "int8")
    assert result.one_delegate and result.error() == 0.0
    with arm_ext.patched(disable=[FIX]):
        stock = lower_and_run(Call(forward), (image,), TARGETS[target], "int8")
    assert stock.covered.compute_ops == (CAST,)


def masked(mask, x):
    return x * mask.float()[..., None]


def test_a_mask():
    given = (torch.tensor([[True, False, True]]), x(1, 3, 4))
    result = lower_and_run(Call(masked), given, U85, "int8")
    assert result.one_delegate and result.error() == 0.0
    # Ethos-U55 has no bool.
    result = lower_and_run(Call(masked), given, TARGETS["ethos-u55-128"], "int8")
    assert result.covered.compute_ops == (CAST,) and result.error() == 0.0


def test_every_code_between_two_and_beyond():
    """The calibrated range is narrower than the integers that come."""

    def forward(counts, x):
        return counts.clamp(-900, 900).float() + x

    counts = torch.arange(-3, 4, dtype=torch.int64)[:, None]
    module = quantize(Call(forward), (counts, torch.zeros(7, 1)), U85)
    wide = torch.arange(-1000, 1001, dtype=torch.int64)[::7][:7, None]
    for given in (counts, wide, -wide):
        result = lower_and_run(module, (given, torch.zeros(7, 1)), U85)
        assert CAST not in result.covered.compute_ops[1:]  # of the int64 input alone
        assert result.covered.delegates == 1 and result.error() <= 1.0


def test_more_than_a_rescale_takes_stays():
    def forward(mask, x):
        return (torch.cumsum(mask, 1) * 2**20).float() + x

    nothing = torch.zeros(1, 4, dtype=torch.bool)
    module = quantize(Call(forward), (nothing, torch.zeros(1, 4)), U85)
    for given in (nothing, ~nothing):
        result = lower_and_run(module, (given, torch.zeros(1, 4)), U85)
        assert result.covered.compute_ops == (CAST,) and result.error() == 0.0


def test_read_by_others_too():
    def forward(x, y):
        positions = x.argmax(-1).float()
        return positions[:, None] * y, positions

    result = lower_and_run(Call(forward), (x(2, 6), x(2, 3)), U85, "int8")
    assert result.covered.delegates == 1 and result.error() <= 1.0
    assert set(result.covered.compute_ops) <= {CAST}


def embedding(linear, step, x):
    """A diffusion policy's timestep, an int64 that comes in."""
    frequencies = torch.exp(torch.arange(8) * -(math.log(1000) / 7))
    angles = step.unsqueeze(-1) * frequencies.unsqueeze(0)
    return linear(torch.cat([angles.sin(), angles.cos()], -1)) + x


def test_arithmetic_of_an_integer_and_a_float_is_quantized():
    torch.manual_seed(0)
    model, x = Call(embedding, torch.nn.Linear(16, 4)), torch.zeros(100, 4)
    given = (torch.arange(100), x)
    distances = []
    for disable in ([], [FIX]):
        with arm_ext.patched(disable=disable):
            result = lower_and_run(model, given, U85, "int8")
        assert result.error() <= 1.0
        distances.append((result.got[0] - model(*given)).abs().mean())
        if not disable:  # the int64 input alone is cast on the CPU
            assert result.covered.delegates == 1
            assert result.covered.compute_ops == (CAST,)
        else:
            assert result.covered.delegates == 2
            assert "aten.mul.Tensor" in result.covered.compute_ops
    # The frequencies are folded in float, not quantized at each op.
    assert distances[0] <= distances[1]


def test_integers_beside_floats_and_numbers():
    def forward(mask, x):
        y = x * (x > 0) - mask
        return y + mask * 0.5, x.argmax(-1)[:, None] / 3

    given = (torch.tensor([[True, False, True]]), x(2, 3))
    result = lower_and_run(Call(forward), given, U85, "int8")
    assert result.one_delegate and result.error() <= 1.0


def test_other_programs_are_byte_identical():
    def forward(linear, x):
        return torch.softmax(linear(x), -1) * 2

    torch.manual_seed(0)
    module, given = Call(forward, torch.nn.Linear(6, 6)), (x(2, 6),)
    payloads = []
    for disable in ([], [FIX]):
        with arm_ext.patched(disable=disable):
            payloads.append(payload(quantize(module, given, U85), given, U85))
    assert payloads[0] == payloads[1]
