# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Constants that the CPU computed, and float64 that float32 holds, end to end."""

import math

import arm_ext
import pytest
import torch
from arm_ext.coverage import coverage
from arm_ext.targets import lower, TARGETS
from lowered import Call, lower_and_run

FIX = "float64-and-constants"
VGF, FP, U85 = (TARGETS[name] for name in ("vgf", "vgf-fp", "ethos-u85-256"))
X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def _constants(x):
    """Frequencies of embeddings, as models write them."""
    n = torch.arange(8)
    fraction = torch.linspace(0, 1, 8, dtype=torch.float64)
    return (
        x * 10000 ** (-n / 8),
        x * torch.pow(2.0, n.float()),
        x * (10000 ** (torch.arange(8, dtype=torch.float64) / 8)).float(),
        x * (2 * math.pi / (4e-3 * (4.0 / 4e-3) ** fraction)).to(torch.float32),
        x + torch.pow(-2.0, n.float()),
        torch.where(n % 2 == 0, x, -x),
    )


def test_constants_are_eager_s_in_every_bit():
    result = lower_and_run(Call(_constants), (X,), FP)
    assert result.one_delegate
    for got, wanted in zip(result.got, result.wanted, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0)


def _numbers(x):
    """Of few digits in float32, which the sine of a large product shows."""
    steps = torch.arange(8, dtype=torch.float64)
    return (
        x + torch.sin(steps * 0.1 * 1e5).float(),
        x + torch.sin((0.1 - steps / 300.7) * 1e5).float(),
        x + (steps * 1e300).clamp(max=2.0**70).float(),
        torch.sin(x.double() * 0.1 * 1e5).float(),
    )


def test_numbers_beside_float64_keep_their_digits():
    """Stock makes them float32, for the CPU as well; there 1e300 is infinite."""
    result = lower_and_run(Call(_numbers), (X,), FP)
    assert result.error() == 0
    assert result.covered.delegates == 1
    assert set(result.covered.compute_ops) == {
        "dim_order_ops._to_dim_order_copy.default",
        "aten.mul.Tensor",
        "aten.sin.default",
    }
    with arm_ext.patched(disable=(FIX,)):
        assert not lower_and_run(Call(_numbers), (X,), FP).error() < 1e-5


def test_constants_behind_a_cast_that_wraps():
    """What a cast to a narrow integer makes of a constant, ops behind it read."""

    def model(x):
        wrapped = (torch.arange(8) * 100).to(torch.int8)
        return x * wrapped.float(), x + (wrapped // 3).float(), x + wrapped[1:3].sum()

    result = lower_and_run(Call(model), (X,), FP)
    assert result.one_delegate and result.error() == 0


def test_constants_of_a_quantized_program():
    model = Call(lambda x: _constants(x)[:4])
    result = lower_and_run(model, (X,), U85, "int8")
    assert result.one_delegate
    assert result.error() <= 1 + 1e-6
    with arm_ext.patched(only=()), pytest.raises(Exception, match="float64"):
        lower_and_run(model, (X,), U85, "int8")


HELD = torch.tensor([0.5, 1.25, -3.0, 7.0, 1e-3, 0.0, 1e30, 2.0**-120])


def _narrowed(x, y):
    wide, half = x.double(), y.half().double()
    held = HELD.double()
    return (
        (wide * held).float(),
        (wide + half).float(),
        (wide[:, None] - held).float().squeeze(1),
        torch.cat([wide.abs().sqrt(), -wide], -1).float(),
        (wide.t().unsqueeze(0) * half.t()).to(torch.float32),
        wide.abs().float(),
    )


def test_one_rounding_is_the_same_in_float32():
    """Over many values, subnormal and infinite results among them."""
    scale = torch.logspace(-40, 38, 4 * 8).reshape(4, 8)
    result = lower_and_run(Call(_narrowed), (X * scale, X), FP)
    assert result.one_delegate
    for place, (got, wanted) in enumerate(zip(result.got, result.wanted, strict=True)):
        exact = place != 3  # the backend's square root is not
        rtol = 0 if exact else 5e-6
        torch.testing.assert_close(got, wanted, rtol=rtol, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    "model",
    [
        lambda x: (x.double() * torch.tensor([0.1], dtype=torch.float64)).float(),
        lambda x: (x.double() * x.double() + 1.0).float(),
        lambda x: torch.sin(x.double()).float(),
        lambda x: (x.double() * (torch.arange(8).double() / 10)).float(),
    ],
)
def test_what_float32_would_round_otherwise_stays(model):
    result = lower_and_run(Call(model), (X,), VGF)
    assert result.covered.delegates == 0
    assert "same digits" in result.reasons()
    assert "cast to float32 in front of it" in result.reasons()
    assert result.error() == 0


def test_float64_is_not_annotated():
    def model(x):
        angle = x.double() * torch.linspace(0, 1, 8, dtype=torch.float64)
        return (torch.sin(angle).float() * 2) * x

    result = lower_and_run(Call(model), (X,), U85, "int8")
    assert "aten.sin.default" in result.covered.compute_ops
    assert result.error() <= 1 + 1e-6


def _time_embedding(linear, time, x):
    """A timestep as SmolVLA embeds it."""
    fraction = torch.linspace(0, 1, 8, dtype=torch.float64)
    frequencies = 2 * math.pi / (4e-3 * (4.0 / 4e-3) ** fraction)
    angles = frequencies[None, :] * time[:, None]
    return linear(torch.cat([angles.sin(), angles.cos()], 1).to(x.dtype)) + x


@pytest.mark.parametrize("target", [VGF, U85])
def test_an_input_to_float64_is_neither_viewed_before_nor_quantized(target):
    torch.manual_seed(0)
    model = Call(_time_embedding, torch.nn.Linear(16, 4))
    given = (torch.linspace(0, 1, 32), torch.zeros(32, 4))
    result = lower_and_run(model, given, target, "int8" if target is U85 else None)
    assert result.covered.delegates == 1
    assert set(result.covered.compute_ops) == {
        "dim_order_ops._to_dim_order_copy.default",
        *(f"aten.{op}.default" for op in ("unsqueeze_copy", "sin", "cos", "cat")),
        "aten.mul.Tensor",
    }
    # Of a time in 256 steps, the first sine would be any number.
    accuracy = 3 * result.steps[0] if target is U85 else 1e-6
    assert (result.got[0] - model(*given)).abs().max() <= accuracy


def test_a_view_that_others_read_is_left_in_the_delegate():
    def model(time, x):
        viewed = time[:, None]
        return (viewed.double() * 0.1).sin().float() + viewed * x

    result = lower_and_run(Call(model), (torch.rand(4), X), FP)
    assert "aten.unsqueeze_copy.default" not in result.covered.compute_ops
    assert result.error() <= 1e-6


def test_a_computed_exponent():
    """Within 5e-6 of eager, relative: TOSA's POW on the reference model."""
    model = Call(lambda x: (torch.pow(2.0, x), 10000**x, torch.pow(0.5, x[0, 0])))
    result = lower_and_run(model, (X,), FP)
    assert result.one_delegate
    for got, wanted in zip(result.got, result.wanted, strict=True):
        torch.testing.assert_close(got, wanted, rtol=5e-6, atol=0)
    result = lower_and_run(Call(lambda x: torch.pow(-2.0, x)), (X,), FP)
    assert result.covered.compute_ops == ("aten.pow.Scalar",)


def test_an_int64_beyond_int32_is_not_folded():
    x = torch.tensor([0, 1, 2], dtype=torch.int32)
    model = Call(lambda x: (x == torch.arange(3) * 2**32, x == torch.arange(3) * 2))
    result = lower_and_run(model, (x,), VGF)
    assert all(torch.equal(a, b) for a, b in zip(result.got, result.wanted))


def test_stock_leaves_constants_on_the_cpu():
    with arm_ext.patched(only=()):
        left = coverage(lower(Call(_constants), (X,), FP)).compute_ops
    assert {"aten.pow.Scalar", "aten.arange.start_step"} <= set(left)


def test_constants_that_are_taken_are_untouched():
    def model(x):
        return x * torch.arange(8, dtype=torch.float32) + torch.full((8,), 2.0)

    with arm_ext.patched(only=()):
        stock = lower(Call(model), (X,), VGF).to_executorch().buffer
    with arm_ext.patched(only=(FIX,)):
        assert lower(Call(model), (X,), VGF).to_executorch().buffer == stock
