# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A float is cast to an integer as PyTorch does it, towards zero."""

import arm_ext
import pytest
import torch
from arm_ext import verify
from arm_ext.targets import lower, TARGETS
from lowered import Call, payload

FIX = "float-to-int-cast"
VGF = TARGETS["vgf"]
# Halves, both signs, the ends of int8, and what is whole already.
VALUES = [-127.9, -3.7, -2.5, -1.5, -0.75, -0.5, -0.0, 0.3, 0.5, 1.5, 2.5, 7.0, 127.9]
INTEGERS = (torch.int8, torch.int16, torch.int32)


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def casts(x):
    return tuple((x * 1.0).to(dtype) for dtype in INTEGERS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_every_integer(dtype):
    x = torch.tensor(VALUES, dtype=dtype)
    with arm_ext.patched(only=()):
        stock = verify.run(lower(Call(casts), (x,), VGF), x)
    wanted = casts(x)
    assert not torch.equal(stock[0], wanted[0])
    edge = lower(Call(casts), (x,), VGF)
    for got, value in zip(verify.run(edge, x), wanted, strict=True):
        assert got.dtype == value.dtype and torch.equal(got, value)
    assert edge.to_executorch().buffer


@pytest.mark.parametrize("shape", [(), (1,), (2, 1, 3, 1, 2)])
def test_ranks(shape):
    x = torch.rand(shape) * 9 - 4.5
    edge = lower(Call(lambda x: (x * 1.0).to(torch.int8)), (x,), VGF)
    assert torch.equal(verify.run(edge, x), x.to(torch.int8))


@pytest.mark.parametrize("by", [0.5, 2.25])
def test_a_number_with_a_fraction(by):
    x = torch.tensor(VALUES) / 2

    def cast(x):
        floor = torch.floor(x)
        return (floor + by).to(torch.int8), torch.clamp(floor, -by, by).to(torch.int8)

    edge = lower(Call(cast), (x,), VGF)
    assert all(map(torch.equal, verify.run(edge, x), cast(x)))


def test_other_casts_are_byte_identical():
    def others(x):
        whole = torch.clamp(torch.floor(x * 2.0), -100.0, 100.0).to(torch.int8)
        floats = (x > 0).to(torch.float32), x.to(torch.float16)
        return (x * 1.5).to(torch.int32), whole, *floats

    x = torch.tensor(VALUES)
    payloads = []
    for disable in ([], [FIX]):
        with arm_ext.patched(disable=disable):
            payloads.append(payload(Call(others), (x,), VGF))
    assert payloads[0] == payloads[1]
