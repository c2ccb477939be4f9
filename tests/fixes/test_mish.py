# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Mish, end to end: one TABLE where quantized, a few ulp of the type in float."""

import arm_ext
import preserved_ops as walk
import pytest
import torch
import torch.nn.functional as F
from arm_ext import verify
from arm_ext.coverage import coverage
from arm_ext.targets import lower, quantize, TARGETS
from executorch.backends.arm.quantizer.quantizer_support import (
    TOSA_QUANTIZER_SUPPORT_DICT,
)
from lowered import Call, lower_and_run
from torch.export import Dim, export
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

FIX = "mish"
VGF, U85, U55 = (TARGETS[t] for t in ("vgf", "ethos-u85-256", "ethos-u55-128"))
INTEGER = (TARGETS["vgf-int"], VGF, U85, U55)
MISH = torch.ops.aten.mish.default
X = torch.randn(1, 8, 16, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def block(activation=None):
    """Conv1d, Mish, Conv1d."""
    torch.manual_seed(0)
    first, second = (torch.nn.Conv1d(8, 8, 3, padding=1) for _ in range(2))
    activation = activation or torch.nn.Mish()
    return torch.nn.Sequential(first, activation, second).eval()


# Quantized


CASES = [(target, "int8") for target in INTEGER]
CASES += [(U85, "int8-per-tensor"), (U85, "qat"), (VGF, "qat")]


@pytest.mark.parametrize(("target", "quantization"), CASES)
def test_int8_is_bit_exact_in_one_delegate(target, quantization):
    inplace = quantization == "qat"
    result = lower_and_run(block(torch.nn.Mish(inplace)), (X,), target, quantization)
    assert result.one_delegate
    assert result.error() == 0


@pytest.mark.parametrize("target", INTEGER, ids=lambda target: target.name)
def test_a16w8_is_within_a_step(target):
    result = lower_and_run(block(), (X,), target, "a16w8")
    assert result.one_delegate
    # Scale times code is rounded to fp32 on either side.
    assert result.error() <= 1 + 1e-3


@pytest.mark.parametrize("quantization", ["int8", "a16w8"])
def test_the_whole_range_of_codes(quantization):
    """A [-12, 4] input reaches every code: the table itself is compared.

    TOSA interpolates a 16-bit table between 513 points. At the bottom of mish that
    is off by 2 steps here, as it is for GELU.

    """
    x = torch.linspace(-12, 4, 70000)
    result = lower_and_run(Call(F.mish), (x,), U85, quantization)
    assert result.one_delegate
    assert result.error() <= (0 if quantization == "int8" else 2 + 1e-3)


def test_all_users_of_a_quantized_mish():
    def model(x):
        y = F.mish(x)
        return y, y + x, F.mish(y) * 2

    result = lower_and_run(Call(model), (X,), U85, "int8")
    assert result.one_delegate
    assert result.error() <= 1 + 1e-6


def test_a_float_mish_between_quantized_ops():
    quantizer = VGF.quantizer("int8").set_module_type(torch.nn.Mish, None)
    exported = export(block(), (X,)).module(check_guards=False)
    prepared = prepare_pt2e(exported, quantizer)
    prepared(X)
    result = lower_and_run(convert_pt2e(prepared), (X,), VGF)
    assert result.one_delegate
    assert result.error() == 0


@pytest.mark.parametrize("target", [U85, U55], ids=lambda target: target.name)
def test_stock_splits_the_graph(target):
    with arm_ext.patched(only=()):
        result = lower_and_run(block(), (X,), target, "int8")
        assert result.covered.delegates == 2
        assert "aten.log1p.default" in result.covered.compute_ops


# Float


RANGE = torch.linspace(-87, 30, 40001, dtype=torch.float64)
SPECIAL = torch.tensor(
    [torch.inf, -torch.inf, torch.nan, 0.0, -0.0, 20.0, -20.0, 3e38, -3e38, -104.0],
    dtype=torch.float64,
)


def ulps(got, wanted):
    """Return the largest difference in units in the last place of ``wanted``."""
    dtype, wanted = wanted.dtype, wanted.abs()
    ulp = torch.nextafter(wanted, torch.tensor(torch.inf, dtype=dtype)) - wanted
    return ((got.abs().double() - wanted.double()) / ulp.double()).abs().max().item()


@pytest.mark.parametrize(
    ("name", "dtype", "most"),
    [
        ("vgf", torch.float32, 4),
        ("vgf-fp", torch.float32, 4),
        ("vgf-fp", torch.float16, 1),
        ("vgf-bf16", torch.bfloat16, 1),
    ],
)
def test_float_is_within_ulps_over_the_whole_range(name, dtype, most):
    """fp32 within 4 ulp of the exact value, where eager itself is off by 3."""
    x = torch.cat([RANGE, SPECIAL]).to(dtype)
    result = lower_and_run(Call(F.mish), (x,), TARGETS[name])
    assert result.one_delegate
    (got,), (wanted,) = result.got, result.wanted
    exact = F.mish(x.double()).to(dtype)
    assert ulps(got[: len(RANGE)], exact[: len(RANGE)]) <= most
    special = slice(len(RANGE), None)
    torch.testing.assert_close(
        got[special], wanted[special], rtol=1e-6, atol=0, equal_nan=True
    )
    number = ~wanted.isnan()
    assert torch.equal(got.signbit()[number], wanted.signbit()[number])


def test_stock_underflows():
    with arm_ext.patched(only=()):
        x = torch.tensor([-20.0, -25.0])
        result = lower_and_run(Call(F.mish), (x,), VGF)
        assert (result.got[0] == 0).any() and (result.wanted[0] != 0).all()


def test_dtypes_and_ranks():
    programs = walk.programs(MISH)[::3]  # every dtype, and each rank once
    bundle = walk.Bundle(programs)
    edge = lower(bundle, bundle.inputs, VGF)
    assert "aten.mish.default" not in coverage(edge).cpu_ops
    assert edge.to_executorch().buffer
    got = verify.run(edge, *bundle.inputs)
    for program, a, b in zip(programs, got, bundle(*bundle.inputs), strict=True):
        assert a.dtype == b.dtype, program.name
        assert torch.allclose(a.double(), b.double(), rtol=1e-2, atol=1e-6), program


def test_dynamic_and_strided_inputs():
    shapes = ({0: Dim("n", min=2, max=9)},)
    edge = lower(torch.nn.Mish(), (torch.randn(4, 8),), VGF, dynamic_shapes=shapes)
    assert coverage(edge).delegates == 1 and coverage(edge).cpu_ops == ()
    result = lower_and_run(Call(F.mish), (torch.randn(8, 4).t(),), VGF)
    assert result.one_delegate
    assert result.error() <= 1e-6


# The fix


def test_a_program_without_mish_is_untouched():
    model = quantize(block(torch.nn.SiLU()), (X,), U85)
    with arm_ext.patched(only=()):
        stock = lower(model, (X,), U85).to_executorch().buffer
    with arm_ext.patched(only=(FIX,)):
        assert lower(model, (X,), U85).to_executorch().buffer == stock


def test_alone_it_keeps_no_mish_that_is_not_taken():
    with arm_ext.patched(only=(FIX,)):
        x = torch.randn(1, 1, 1, 1, 1, 1, 4)
        edge = lower(Call(F.mish), (x,), VGF)
        assert coverage(edge).delegates == 0
        assert "aten.mish.default" not in coverage(edge).cpu_ops


def test_revert_takes_mish_out_of_the_lists():
    assert (MISH,) in TOSA_QUANTIZER_SUPPORT_DICT
    arm_ext.revert()
    assert (MISH,) not in TOSA_QUANTIZER_SUPPORT_DICT
    partitioner = VGF.partitioner()
    ops, _ = partitioner.ops_to_not_decompose(export(Call(F.mish), (X,)))
    assert MISH not in ops
