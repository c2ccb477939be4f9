# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A float model on an integer-only target is told to be quantized, and how."""

import warnings

import arm_ext
import pytest
import torch
from arm_ext.coverage import coverage
from arm_ext.targets import lower, quantize, TARGETS

FIX = "unquantized-model"
X = torch.randn(1, 4)


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def said(module, inputs, target):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        edge = lower(module, inputs, TARGETS[target])
    messages = [str(w.message) for w in caught]
    return edge, [m for m in messages if "has integers only" in m]


@pytest.mark.parametrize(
    ("target", "quantizer"),
    [
        ("ethos-u85-256", "EthosUQuantizer"),
        ("ethos-u55-128", "EthosUQuantizer"),
        ("vgf-int", "VgfQuantizer"),
    ],
)
def test_one_warning_names_the_quantizer(target, quantizer):
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    edge, (message,) = said(module, (X,), target)
    assert quantizer in message and "prepare_pt2e" in message
    assert coverage(edge).delegates == 0


def test_stock_says_nothing_and_lowers_to_the_same():
    edge, _ = said(torch.nn.ReLU(), (X,), "ethos-u85-256")
    with arm_ext.patched(only=()):
        stock, messages = said(torch.nn.ReLU(), (X,), "ethos-u85-256")
    assert messages == []
    assert edge.to_executorch().buffer == stock.to_executorch().buffer


class Add(torch.nn.Module):
    def forward(self, x):
        return x + x.flip(0)


@pytest.mark.parametrize(
    ("module", "x", "target"),
    [
        (torch.nn.ReLU(), X, "vgf"),
        (Add(), torch.arange(4, dtype=torch.int32), "ethos-u85-256"),
        (Add(), torch.arange(4), "ethos-u85-256"),
    ],
    ids=["float target", "delegated", "no float"],
)
def test_nothing_where_quantizing_would_not_help(module, x, target):
    assert said(module, (x,), target)[1] == []


def test_nothing_for_a_quantized_model():
    module = quantize(torch.nn.ReLU().eval(), (X,), TARGETS["ethos-u85-256"])
    assert said(module, (X,), "ethos-u85-256")[1] == []


def test_nothing_for_a_quantized_program_that_is_still_in_aten():
    target = TARGETS["ethos-u85-256"]
    program = torch.export.export(quantize(torch.nn.ReLU().eval(), (X,), target), (X,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        target.partitioner().partition(program)
