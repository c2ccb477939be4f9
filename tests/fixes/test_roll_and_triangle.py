# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""roll, triu and tril, end to end: they move data or drop it, bit for bit."""

import arm_ext
import pytest
import torch
from arm_ext.coverage import coverage
from arm_ext.targets import lower, TARGETS
from lowered import Call, lower_and_run
from torch.export import Dim

FIX = "roll-and-triangle"
VGF, FP, BF16 = (TARGETS[name] for name in ("vgf", "vgf-fp", "vgf-bf16"))
INT, U85, U55 = (TARGETS[n] for n in ("vgf-int", "ethos-u85-256", "ethos-u55-128"))
X = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def _rolls(x):
    return (
        x.roll(2, 1),
        x.roll(-1, -1),
        x.roll((1, -3), (0, 2)),
        x.roll((1, 1), (2, 2)),
        x.roll(100, 2),
        x.roll(-7),
        x.roll(6, 2),
        x[0, 0].roll(5),
        x[:, :1].roll(3, 1),
        x.t().roll(1, 0) if x.dim() == 2 else x.permute(2, 0, 1).roll(1, 0),
        x.reshape(1, 2, 2, 2, 6).roll((2, 1), (4, 1)),
    )


def _same(result):
    pairs = zip(result.got, result.wanted, strict=True)
    return all(torch.equal(got, wanted) for got, wanted in pairs)


@pytest.mark.parametrize(
    ("target", "dtype"),
    [
        (FP, torch.float32),
        (FP, torch.float16),
        (BF16, torch.bfloat16),
        (VGF, torch.int32),
        (VGF, torch.bool),
    ],
)
def test_roll_is_sliced(target, dtype):
    x = (4 * X).to(dtype) if dtype != torch.bool else X > 0
    result = lower_and_run(Call(_rolls), (x,), target)
    assert result.one_delegate
    assert _same(result)


@pytest.mark.parametrize(
    ("target", "quantization"),
    [(INT, "int8"), (U85, "a16w8"), (U55, "int8")],
)
def test_quantized_roll_is_exact(target, quantization):
    result = lower_and_run(Call(_rolls), (X,), target, quantization)
    assert result.one_delegate
    assert result.error() == 0


def _triangles(x):
    return (
        x.triu(),
        x.tril(),
        x.triu(2),
        x.tril(-2),
        x.triu(-1),
        x.tril(9),
        x.triu(9),
        x[:1].triu(1),
        x.reshape(1, 2, 1, 4, 6).tril(1),
    )


@pytest.mark.parametrize(
    ("target", "dtype"),
    [(FP, torch.float32), (BF16, torch.bfloat16), (VGF, torch.int32)],
)
def test_what_is_masked_out_is_zero(target, dtype):
    x = 4 * X
    if dtype.is_floating_point:
        x = x.clone()
        x[0, 3, 0], x[0, 0, 5], x[1, 2, 2] = torch.nan, torch.inf, -torch.inf
    x = x.to(dtype)
    result = lower_and_run(Call(_triangles), (x,), target)
    assert result.one_delegate
    for got, wanted in zip(result.got, result.wanted, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)


def test_triangles_of_a_bool():
    model = Call(lambda x: (x[0].triu(1), x[1].tril()))
    result = lower_and_run(model, (X > 0,), VGF)
    assert result.one_delegate
    assert _same(result)


@pytest.mark.parametrize(
    ("target", "quantization"),
    [(VGF, "int8"), (INT, "int8"), (U85, "a16w8")],
)
def test_quantized_triangles_are_exact(target, quantization):
    result = lower_and_run(Call(_triangles), (X,), target, quantization)
    assert result.one_delegate
    assert result.error() == 0


def test_a_large_mask_is_not_quantized():
    """An int8 row number cannot tell 300 rows apart."""
    x = 1 + torch.rand(300, 300, generator=torch.Generator().manual_seed(0))
    result = lower_and_run(Call(torch.tril), (x,), U85, "int8")
    assert result.one_delegate
    assert result.error() == 0
    outside = torch.ones(300, 300).triu(1).bool()
    assert (result.got[0][outside] == 0).all()
    assert (result.got[0][~outside] > 0.9).all()


def _causal(x):
    mask = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    added = torch.triu(torch.full((4, 4), float("-inf")), 1)
    whole = torch.tril(torch.ones(4, 4, dtype=torch.int64))
    scores = x @ x.transpose(-1, -2)
    return (
        scores.masked_fill(mask, -1e4).softmax(-1) @ x,
        (scores + added).softmax(-1) @ x,
        scores * whole,
    )


def test_causal_masks():
    result = lower_and_run(Call(_causal), (X,), FP)
    assert result.one_delegate
    assert result.error() <= 2e-6
    model = Call(lambda x: _causal(x)[:2])
    result = lower_and_run(model, (X,), U85, "int8")
    assert result.one_delegate
    assert result.error() <= 4


# Refused


def test_ethos_u55_has_no_select():
    result = lower_and_run(Call(torch.triu), (X,), U55, "int8")
    assert result.covered.compute_ops == ("aten.where.self",)
    assert "bool" in result.reasons()
    assert result.error() == 0


def test_a_dynamic_size():
    shapes = (({0: Dim("n", min=2, max=9)},),)
    model = Call(lambda x: x.roll(1, 0) + 1)
    edge = lower(model, (X,), FP, dynamic_shapes=shapes)
    assert "aten.index_select.default" in coverage(edge).compute_ops
    assert edge.to_executorch().buffer


# The fix


def test_stock_splits_the_graph():
    model = Call(lambda x: (x * 2).roll(1, -1).triu() * 2)
    with arm_ext.patched(only=()):
        result = lower_and_run(model, (X,), U85, "int8")
        assert result.covered.delegates != 1
        assert {"aten.index_select.default", "aten.where.self"} <= set(
            result.covered.compute_ops
        )
    assert lower_and_run(model, (X,), U85, "int8").one_delegate


def test_a_program_without_them_is_untouched():
    index = torch.tensor([0, 2, 3], dtype=torch.int32)
    model = Call(lambda x: torch.index_select(x * 2, 1, index) + 1)
    with arm_ext.patched(only=()):
        stock = lower(model, (X,), VGF).to_executorch().buffer
    with arm_ext.patched(only=(FIX,)):
        edge = lower(model, (X,), VGF)
    assert coverage(edge).delegates == 1
    assert edge.to_executorch().buffer == stock
