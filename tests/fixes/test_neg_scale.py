# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A quantized neg whose input another op has given other qparams."""

import arm_ext
import pytest
import torch
from arm_ext import verify
from arm_ext.targets import lower, quantize, TARGETS
from lowered import Call, payload

FIX = "neg-scale"


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def beside_cat(x, y):
    return -x, torch.cat([x, y])


def inputs(low, high):
    """One tensor within given bounds, and one with a larger range."""
    x = torch.linspace(low, high, 24).reshape(2, 3, 4)
    return x, torch.linspace(-3.0, 27.0, 24).reshape(2, 3, 4)


def worst(function, example, target, quantization="int8"):
    """Return the largest error, and what a quantization step of neg's output is."""
    module = quantize(Call(function), example, target, quantization)
    edge = lower(module, example, target)
    wanted, got = module(*example)[0], verify.run(edge, *example)[0]
    assert edge.to_executorch().buffer
    steps = 255 if quantization == "int8" else 32767
    return (got - wanted).abs().max().item(), 2 * wanted.abs().max().item() / steps


@pytest.mark.parametrize("target", ["vgf-int", "ethos-u85-256", "ethos-u55-128"])
@pytest.mark.parametrize("bounds", [(-5.5, 0.25), (0.0, 4.0), (-0.1, 0.1)])
def test_within_a_step(target, bounds):
    error, step = worst(beside_cat, inputs(*bounds), TARGETS[target])
    assert error <= step


def test_sixteen_bits():
    target = TARGETS["ethos-u85-256"]
    error, step = worst(beside_cat, inputs(-5.5, 0.25), target, "a16w8")
    assert error <= 2 * step


def test_stock_is_wrong_in_silence():
    example = inputs(-5.5, 0.25)
    with arm_ext.patched(disable=[FIX]):
        error, step = worst(beside_cat, example, TARGETS["vgf-int"])
    assert error > 10 * step


def test_one_scale_is_left_as_it_is():
    def function(x, y):
        return -x, x + y

    example, target = inputs(-5.5, 0.25), TARGETS["ethos-u85-256"]
    module = quantize(Call(function), example, target)
    fixed = payload(module, example, target)
    with arm_ext.patched(disable=[FIX]):
        assert payload(module, example, target) == fixed
