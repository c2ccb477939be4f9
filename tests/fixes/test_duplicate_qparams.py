# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Equal ops of different qparams stay two, others are fused as before."""

import arm_ext
import torch
from arm_ext.targets import quantize, TARGETS
from lowered import Call, lower_and_run, payload

FIX = "duplicate-qparams"
U85 = TARGETS["ethos-u85-256"]


def inputs():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 2, 4, generator=generator)
    return 100 * x, y


def apart(x, y):
    return torch.cat([x * 1.5, y + y], 1), (y + y) * 0.5


def test_each_has_its_own_scale():
    with arm_ext.patched():
        result = lower_and_run(Call(apart), inputs(), U85, "int8")
    assert result.one_delegate and result.error() <= 1.0
    with arm_ext.patched(only=()):
        stock = lower_and_run(Call(apart), inputs(), U85, "int8")
    assert stock.error() > 50.0


def test_equal_ones_are_byte_identical():
    def forward(x, y):
        return (y + y) * x, (y + y) * 0.5

    payloads = []
    for disable in ([], [FIX]):
        with arm_ext.patched(disable=disable):
            module = quantize(Call(forward), inputs(), U85)
            payloads.append(payload(module, inputs(), U85))
    assert payloads[0] == payloads[1]
