# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""isnan, isinf and fmod, end to end: exact in every bit, or on the CPU."""

import math

import arm_ext
import pytest
import torch
from arm_ext import verify
from arm_ext.coverage import coverage
from arm_ext.targets import lower, quantize, TARGETS
from lowered import Call, lower_and_run, passes
from torch.export import Dim

FIX = "isnan-isinf-fmod"
VGF, FP, BF16 = (TARGETS[name] for name in ("vgf", "vgf-fp", "vgf-bf16"))
INT, U85, U55 = (TARGETS[n] for n in ("vgf-int", "ethos-u85-256", "ethos-u55-128"))
FLOATS = [(FP, torch.float32), (FP, torch.float16), (BF16, torch.bfloat16)]
INF, NAN = math.inf, math.nan
LEFT = ("aten.isnan.default", "aten.isinf.default", "aten.fmod.Scalar")


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def generator():
    return torch.Generator().manual_seed(0)


def special(dtype):
    limits = torch.finfo(dtype)
    values = [0.0, -0.0, 1.0, -2.5, INF, -INF, NAN, limits.max, limits.min]
    return torch.tensor([*values, limits.tiny, -limits.tiny]).to(dtype)


def _every_test(x):
    return (
        x.isnan(),
        x.isinf(),
        x.isfinite(),
        torch.where(x.isnan(), 0, x),
        x.nan_to_num(1.5),
        x[4].isinf(),
        (x.reshape(1, 11, 1, 1, 1) * 2).isnan(),
    )


@pytest.mark.parametrize(("target", "dtype"), FLOATS)
def test_nan_and_infinity_are_told(target, dtype):
    x = special(dtype)
    edge = lower(Call(_every_test), (x,), target)
    found = coverage(edge)
    assert (found.delegates, found.compute_ops) == (1, ())
    for got, wanted in zip(verify.run(edge, x), _every_test(x), strict=True):
        assert got.dtype == wanted.dtype
        torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)
    assert edge.to_executorch().buffer


def bits(dtype, count):
    """Return values of every exponent, NaN and infinities among them."""
    size, integer = (4, torch.int32) if dtype == torch.float32 else (2, torch.int16)
    bounds = 2 ** (8 * size - 1)
    codes = torch.randint(-bounds, bounds, (count,), generator=generator())
    return codes.to(integer).view(dtype)


def multiples(divisor, dtype):
    """Return values at, just below and just above multiples and half ones."""
    whole = torch.randint(0, 1 << 13, (400,), generator=generator()).double() / 2
    values = torch.cat([whole, whole * 2.0**40]) * divisor
    values = values.to(dtype)
    up, down = (torch.tensor(sign * INF, dtype=dtype) for sign in (1, -1))
    return torch.cat(
        [values, torch.nextafter(values, up), -torch.nextafter(values, down)]
    )


@pytest.mark.parametrize(
    ("target", "dtype", "divisors"),
    [
        (FP, torch.float32, (0.7, 1.0, -360.0, 2.0**-32, 3e38)),
        (VGF, torch.float32, (16777215.0, 65536.0)),
        (FP, torch.float16, (0.7, 1.0, 3e-5, 60000.0)),
        (BF16, torch.bfloat16, (0.7, 2.0)),
    ],
)
def test_fmod_is_exact_for_every_dividend(target, dtype, divisors):
    """Also where the quotient is beyond fp32, where eager may give NaN."""
    rounded = [torch.tensor(y, dtype=dtype).double().item() for y in divisors]
    near = [multiples(y, dtype) for y in rounded]
    x = torch.cat([special(dtype), bits(dtype, 20000), *near])

    def remainders(x):
        return tuple(torch.fmod(x, y) for y in divisors)

    edge = lower(Call(remainders), (x,), target)
    found = coverage(edge)
    assert (found.delegates, found.compute_ops) == (1, ())
    assert edge.to_executorch().buffer
    for got, y in zip(verify.run(edge, x), rounded, strict=True):
        wanted = torch.fmod(x.double(), y).to(dtype)
        torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)
        number = ~wanted.isnan()
        assert torch.equal(got.signbit()[number], wanted.signbit()[number])
        for one, of in zip(got[:500:7].tolist(), x[:500:7].tolist(), strict=True):
            assert math.isinf(of) or one == math.fmod(of, y) or math.isnan(of)


def test_the_obvious_form_is_not_exact():
    x = multiples(0.7, torch.float32)
    obvious = x - torch.trunc(x / 0.7) * 0.7
    assert ((obvious - torch.fmod(x, 0.7)).abs() > 0.6).any()


@pytest.mark.parametrize("target", [FP, VGF, U85], ids=lambda target: target.name)
def test_integers(target):
    x = torch.tensor([7, -7, 0, 2**31 - 1, -(2**31), 6, -1, 12345], dtype=torch.int32)

    def remainders(x):
        by = (3, -3, 1, -1, 2**31 - 1, -(2**31))
        same = torch.fmod(x, torch.tensor(5, dtype=torch.int32))
        return *(torch.fmod(x, y) for y in by), same

    result = lower_and_run(Call(remainders), (x,), target)
    assert result.one_delegate
    assert result.error() == 0


def test_shapes_users_and_constant_divisors():
    def model(x, y):
        r = torch.fmod(x * 3, torch.full((1,), 4.0))
        same = torch.fmod(y, torch.tensor(0.7, dtype=torch.float64))
        scalar = torch.fmod(y[0, 0, 0, 0, 0], 2)
        return r, r + x, same, scalar, r.isnan()

    x = 9 * torch.randn(4, 6, generator=generator()).t()
    y = 9 * torch.randn(2, 1, 3, 1, 4, generator=generator())
    result = lower_and_run(Call(model), (x, y), VGF)
    assert result.one_delegate
    assert result.error() == 0

    shapes = (({0: Dim("n", min=2, max=9)},),)
    model = Call(lambda x: torch.fmod(x, 1.0).isnan())
    edge = lower(model, (x,), FP, dynamic_shapes=shapes)
    assert coverage(edge).compute_ops == ()


# Quantized


X = 3 * torch.randn(1, 8, 16, generator=generator())


@pytest.mark.parametrize("target", [VGF, INT, U85, U55], ids=lambda t: t.name)
def test_int8_fmod_is_a_table(target):
    def model(conv, x):
        return torch.fmod(conv(x), 0.7) + x

    torch.manual_seed(0)
    model = Call(model, torch.nn.Conv1d(8, 8, 1))
    result = lower_and_run(model, (X,), target, "int8")
    assert result.one_delegate
    assert result.error() <= 1 + 1e-6
    result = lower_and_run(Call(lambda x: torch.fmod(x, 0.7)), (X,), target, "int8")
    assert result.one_delegate
    assert result.error() == 0


def test_a_16_bit_fmod_is_not_quantized():
    model = Call(lambda x: torch.fmod(x * 2, 0.7) * 2)
    result = lower_and_run(model, (X,), U85, "a16w8")
    assert result.covered.compute_ops == ("aten.fmod.Scalar",)
    assert "not quantized" in result.reasons()
    assert lower_and_run(model, (X,), VGF, "a16w8").one_delegate


@pytest.mark.parametrize("target", [VGF, U85], ids=lambda target: target.name)
def test_a_quantized_value_is_finite(target):
    def guarded(conv, x):
        y = conv(x)
        return torch.where(y.isnan() | y.isinf(), torch.zeros_like(y), y)

    torch.manual_seed(0)
    model = Call(guarded, torch.nn.Conv1d(8, 8, 1))
    result = lower_and_run(model, (X,), target, "int8")
    assert result.one_delegate
    assert result.error() == 0
    with arm_ext.patched(only=()):
        assert not passes(lambda: _is_one_delegate(model, target))


def _is_one_delegate(model, target):
    assert lower_and_run(model, (X,), target, "int8").one_delegate


def test_a_quantized_value_that_is_only_tested():
    def model(conv, x):
        y = conv(x)
        return y, y.isnan()

    torch.manual_seed(0)
    result = lower_and_run(Call(model, torch.nn.Conv1d(8, 8, 1)), (X,), U85, "int8")
    assert result.covered.compute_ops == ("aten.isnan.default",)
    assert result.error() == 0


# Refused


@pytest.mark.parametrize(
    ("name", "model", "dtype", "reason"),
    [
        ("fmod.Tensor", lambda x: torch.fmod(x, x + 1), torch.float32, "not one"),
        ("fmod.Tensor", lambda x: torch.fmod(x, x + 1), torch.int32, "not one"),
        ("fmod.Scalar", lambda x: torch.fmod(x, 0.0), torch.float32, "of a size"),
        ("fmod.Scalar", lambda x: torch.fmod(x, 1e-12), torch.float32, "of a size"),
        ("fmod.Scalar", lambda x: torch.fmod(x, INF), torch.float32, "of a size"),
        ("fmod.Scalar", lambda x: torch.fmod(x, NAN), torch.float32, "of a size"),
        ("fmod.Scalar", lambda x: torch.fmod(x, 1e9), torch.float16, "of a size"),
        ("fmod.Scalar", lambda x: torch.fmod(x, 3), torch.int8, "int8"),
        ("fmod.Scalar", lambda x: torch.fmod(x, 0.7), torch.int32, "the result"),
        ("isnan.default", lambda x: x.isnan(), torch.int32, "never NaN"),
        ("isinf.default", lambda x: x.isinf(), torch.bfloat16, "bfloat16"),
    ],
)
def test_refused_with_a_reason(name, model, dtype, reason):
    x = torch.tensor([1.0, 2.0, 30.0]).to(dtype)
    result = lower_and_run(Call(model), (x,), VGF)
    assert f"aten.{name}" in result.covered.compute_ops
    assert reason in result.reasons()


# The fix


def _guard(x):
    return torch.where(x.isnan(), 0, x), x.isinf(), torch.fmod(x, 0.7)


def test_stock_leaves_all_of_them():
    x = special(torch.float32)
    with arm_ext.patched(only=()):
        left = coverage(lower(Call(_guard), (x,), VGF)).compute_ops
    assert set(LEFT) <= set(left)
    assert coverage(lower(Call(_guard), (x,), VGF)).compute_ops == ()


def test_a_program_without_them_is_untouched():
    def model(conv, x):
        return torch.remainder(conv(x), 0.7).relu()

    torch.manual_seed(0)
    quantized = quantize(Call(model, torch.nn.Conv1d(8, 8, 1)), (X,), U85)
    with arm_ext.patched(only=()):
        stock = lower(quantized, (X,), U85).to_executorch().buffer
    with arm_ext.patched(only=(FIX,)):
        assert lower(quantized, (X,), U85).to_executorch().buffer == stock
