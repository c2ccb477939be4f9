# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What is under no_grad is quantized as the rest is."""

import arm_ext
import pytest
import torch
from arm_ext.passes.inline_grad_mode_pass import InlineGradModePass
from arm_ext.targets import quantize, TARGETS
from lowered import Call, lower_and_run, payload
from torch.export import export

FIX = "no-grad-regions"
U85 = TARGETS["ethos-u85-256"]
REGION = torch.ops.higher_order.wrap_with_set_grad_enabled


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def x():
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(0))


def frozen_encoder(first, second, x):
    y = first(x)
    with torch.no_grad():
        z = torch.relu(second(y)) * 2
        difference = z - y
    return z + y, difference


def layers():
    torch.manual_seed(0)
    return torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)


def test_one_delegate():
    module = Call(frozen_encoder, *layers())
    result = lower_and_run(module, (x(),), U85, "int8")
    assert result.one_delegate and result.error() <= 1.0
    with arm_ext.patched(disable=[FIX]):
        stock = lower_and_run(module, (x(),), U85, "int8")
    assert "aten.addmm.default" in stock.covered.compute_ops


def test_detach_is_no_op():
    """The straight-through estimator of a vector quantizer."""

    def forward(linear, x):
        y = linear(x)
        return y + (torch.round(y) - y).detach(), y.detach()

    torch.manual_seed(0)
    module = Call(forward, torch.nn.Linear(8, 8))
    result = lower_and_run(module, (x(),), U85, "int8")
    assert result.one_delegate and result.error() <= 1.0
    with arm_ext.patched(disable=[FIX]):
        stock = lower_and_run(module, (x(),), U85, "int8")
    assert "aten.alias_copy.default" in stock.covered.compute_ops


def test_batch_norm_is_fused():
    def frozen(conv, norm, x):
        with torch.no_grad():
            return torch.relu(norm(conv(x)))

    torch.manual_seed(0)
    module = Call(frozen, torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).eval()
    result = lower_and_run(module, (torch.randn(1, 3, 8, 8),), U85, "int8")
    assert result.one_delegate and result.error() <= 1.0


def nested(first, second, x):
    scale = torch.tensor([0.5, 2.0])
    with torch.no_grad():
        y = first(x) * scale[0]
        with torch.enable_grad():
            y = torch.relu(second(y)) + scale[1]
        z = y * 2
    return z, x


@pytest.mark.parametrize("function", [frozen_encoder, nested])
def test_numbers_are_those_of_eager(function):
    module = Call(function, *layers())
    captured = export(module, (x(),)).module(check_guards=False)
    assert any(node.target is REGION for node in captured.graph.nodes)
    inlined = InlineGradModePass(tfa_pass=True)(captured).graph_module
    assert not any(node.target is REGION for node in inlined.graph.nodes)
    assert not [name for name, _ in inlined.named_children() if "submod" in name]
    torch.testing.assert_close(inlined(x()), module(x()), rtol=0, atol=0)


def test_other_programs_are_left_alone():
    module = torch.nn.Sequential(*layers())
    with arm_ext.patched(disable=[FIX]):
        without = payload(quantize(module, (x(),), U85), (x(),), U85)
    assert payload(quantize(module, (x(),), U85), (x(),), U85) == without
