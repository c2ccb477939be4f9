# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""max and min of int64 along a dimension, index unread: one delegate, exact."""

import arm_ext
import pytest
import torch
from arm_ext.targets import TARGETS
from lowered import Call, lower_and_run, payload

FIX = "int64-extremum"
FP, VGF = TARGETS["vgf-fp"], TARGETS["vgf"]


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def x():
    return torch.randn(3, 8, generator=torch.Generator().manual_seed(0))


def from_zero(x):
    """Positions counted from the first that is seen, as SmolVLA's expert does."""
    positions = torch.cumsum(x > 0, dim=1) - 1
    last = positions.max(dim=-1).values
    first = positions.min(dim=1, keepdim=True).values
    return (positions - first).float() + last[:, None]


def test_positions_are_one_delegate():
    result = lower_and_run(Call(from_zero), (x(),), VGF)
    assert result.one_delegate and result.error() == 0.0
    with arm_ext.patched(disable=[FIX]):
        without = lower_and_run(Call(from_zero), (x(),), VGF)
    assert "aten.min.dim" in without.covered.compute_ops


def test_index_that_is_read_stays():
    def model(x):
        values, index = torch.cumsum(x > 0, dim=1).max(dim=1)
        return values.float(), index

    result = lower_and_run(Call(model), (x(),), VGF)
    assert result.error() == 0.0


def test_values_of_any_size_stay_with_a_reason():
    result = lower_and_run(Call(lambda x: x.min(dim=1).values), (x().long(),), VGF)
    assert result.covered.compute_ops == ("aten.amin.default",)
    assert result.error() == 0.0 and result.reasons()


def test_float_is_left_to_the_backend():
    def model(x):
        return x - x.min(dim=1, keepdim=True).values

    with arm_ext.patched(disable=[FIX]):
        without = payload(Call(model), (x(),), FP)
    assert payload(Call(model), (x(),), FP) == without
