# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A view behind a norm of a transposed tensor can be quantized."""

import arm_ext
import pytest
import torch
from arm_ext.targets import quantize, TARGETS
from lowered import Call, lower_and_run, payload

FIX = "strided-norm"
U85 = TARGETS["ethos-u85-256"]


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def x():
    return torch.randn(1, 8, 4, 4, generator=torch.Generator().manual_seed(0))


def layer_norm(norm, x):
    """The patches of a vision transformer, normed and shuffled."""
    return norm(x.flatten(2).transpose(1, 2)).view(1, 4, 32)


def group_norm(norm, x):
    return norm(x.transpose(1, 3)).view(1, 2, 64)


CASES = [(layer_norm, torch.nn.LayerNorm(8)), (group_norm, torch.nn.GroupNorm(2, 4))]


@pytest.mark.parametrize(("function", "norm"), CASES)
def test_one_delegate(function, norm):
    result = lower_and_run(Call(function, norm).eval(), (x(),), U85, "int8")
    assert result.one_delegate and result.error() <= 1.0


def test_stock_throws():
    with arm_ext.patched(disable=[FIX]), pytest.raises(Exception) as error:
        quantize(Call(layer_norm, torch.nn.LayerNorm(8)), (x(),), U85)
    assert "Cannot view" in str(error.value.__cause__)


def test_dense_norms_are_left_alone():
    def model(norm, x):
        return norm(x.flatten(2)).view(1, 128)

    module = Call(model, torch.nn.LayerNorm(16))
    with arm_ext.patched(disable=[FIX]):
        without = payload(quantize(module, (x(),), U85), (x(),), U85)
    assert payload(quantize(module, (x(),), U85), (x(),), U85) == without
