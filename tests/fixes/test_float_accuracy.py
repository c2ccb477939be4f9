# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""asinh, log1p, log_softmax and round of floats, where formulas cancel or underflow."""

import math

import arm_ext
import pytest
import torch
from arm_ext import coverage, verify
from arm_ext.targets import lower, quantize, TARGETS
from lowered import Call, payload

FIX = "float-accuracy"
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
INF, NAN = math.inf, math.nan
SMALL = [0.0, 1e-30, 1e-7, 2e-4, 1e-3, 0.0011, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999]
LARGE = [1.0, 1.5, 2.5, 3.5, 8.0, 100.0, 127.0, 129.0, 300.0, 4095.0, 6e4]
HUGE = [1e6, 8388607.5, 8388609.0, 1e19, 3e38]


def target(dtype):
    return TARGETS["vgf-bf16" if dtype is torch.bfloat16 else "vgf"]


def everywhere(dtype):
    """Values of both signs and any size."""
    values = SMALL + LARGE + (HUGE if dtype is not torch.float16 else [])
    return torch.tensor([*values, *(-value for value in values), INF, -INF, NAN]).to(
        dtype
    )


def run(function, x):
    edge = lower(Call(function), (x,), target(x.dtype))
    assert not coverage.coverage(edge).compute_left
    assert edge.to_executorch().buffer
    return verify.run(edge, x)


def assert_close(got, wanted, digits=4):
    eps = digits * torch.finfo(wanted.dtype).eps
    torch.testing.assert_close(got, wanted, rtol=eps, atol=eps, equal_nan=True)


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_is_exact(dtype):
    x = everywhere(dtype)
    below_half = torch.nextafter(torch.tensor(0.5), torch.tensor(0.0)).to(dtype)
    x = torch.cat([x, below_half.reshape(1), -below_half.reshape(1)])
    torch.testing.assert_close(
        run(torch.round, x), torch.round(x), rtol=0, atol=0, equal_nan=True
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_asinh(dtype):
    x = everywhere(dtype)
    assert_close(run(torch.asinh, x), torch.asinh(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_log1p(dtype):
    x = everywhere(dtype)
    x = x[~(x < -1)]
    assert_close(run(torch.log1p, x), torch.log1p(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, -1])
def test_log_softmax(dtype, dim):
    x = torch.tensor([[0.0, -30.0, -200.0, 5.0], [1.0, 2.0, -INF, 300.0]]).to(dtype)
    assert_close(run(lambda x: torch.log_softmax(x, dim), x), x.log_softmax(dim))


def test_log1p_is_close_in_relative_terms():
    x = torch.tensor([1e-30, 1e-10, -1e-10, 3e-8, 1.1e-3, -1e-3])
    torch.testing.assert_close(run(torch.log1p, x), x.log1p(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("shape", [(), (1,), (2, 1, 3, 1, 2)])
def test_ranks_and_several_users(shape):
    x = torch.randn(shape) * 3

    def function(x):
        doubled = x * 2
        return torch.round(doubled), torch.asinh(doubled) + doubled

    rounded, sum_ = run(function, x)
    assert torch.equal(rounded, torch.round(x * 2))
    assert_close(sum_, torch.asinh(x * 2) + x * 2)


def test_stock_is_wrong_in_silence():
    x = torch.tensor([-0.9, 0.5, -5000.0, -200.0])

    def function(x):
        return (
            torch.log1p(x[:1]),
            torch.round(x[1:2]),
            torch.asinh(x[2:3]),
            torch.log_softmax(x[1:], 0),
        )

    with arm_ext.patched(disable=[FIX]):
        stock = verify.run(lower(Call(function), (x,), TARGETS["vgf"]), x)
    for got, wanted, fixed in zip(stock, function(x), run(function, x), strict=True):
        assert not torch.allclose(got, wanted, rtol=1e-2)
        assert_close(fixed, wanted)


def test_quantized_ops_are_what_they_were():
    def function(x):
        return torch.asinh(x) + torch.log1p(x) + torch.round(x)

    x, vgf = torch.rand(2, 8) * 4, TARGETS["vgf-int"]
    module = quantize(Call(function), (x,), vgf)
    fixed = payload(module, (x,), vgf)
    with arm_ext.patched(disable=[FIX]):
        assert payload(module, (x,), vgf) == fixed
