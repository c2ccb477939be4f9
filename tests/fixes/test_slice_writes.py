# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A tensor filled in slices: right when quantized, one delegate when not."""

import arm_ext
import pytest
import torch
from arm_ext.passes.fill_uninitialized_pass import FillUninitializedPass
from arm_ext.passes.functionalize_slice_writes_pass import FunctionalizeSliceWritesPass
from arm_ext.targets import quantize, TARGETS
from lowered import Call, lower_and_run, payload
from torch.export import export

FIX = "slice-writes"
FP, U85, U55 = (TARGETS[n] for n in ("vgf-fp", "ethos-u85-256", "ethos-u55-128"))


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def x():
    return torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(0))


def rotate(x):
    """The halves of a rotary embedding, written one by one."""
    y = torch.empty_like(x)
    y[..., :4] = x[..., :4] * 0.5 - x[..., 4:]
    y[..., 4:] = x[..., 4:] * 0.5 + x[..., :4]
    return y


def test_float_is_one_delegate():
    result = lower_and_run(Call(rotate), (x(),), FP)
    assert result.one_delegate and result.error() == 0.0
    with arm_ext.patched(disable=[FIX]):
        stock = lower_and_run(Call(rotate), (x(),), FP)
    assert stock.covered.compute_ops == ("aten.empty_permuted.default",)


@pytest.mark.parametrize("target", [U85, U55], ids=lambda target: target.name)
def test_quantized_is_right(target):
    result = lower_and_run(Call(rotate), (x(),), target, "int8")
    assert result.one_delegate and result.error() <= 1.0
    # The quantized program is the float one, to a step of its output or two.
    assert (result.wanted[0] - rotate(x())).abs().max() < 2 * result.steps[0] < 0.1


def test_stock_quantizes_it_wrong():
    with arm_ext.patched(disable=[FIX]):
        wrong = quantize(Call(rotate), (x(),), U85)(x())
    assert not (wrong - rotate(x())).abs().max() < 1.0


def functionalized(function, *inputs):
    module = export(Call(function), inputs).module(check_guards=False)
    module = FillUninitializedPass(lambda node: None)(module).graph_module
    module = FunctionalizeSliceWritesPass(tfa_pass=True)(module).graph_module
    left = sum(n.target == torch.ops.aten.copy_.default for n in module.graph.nodes)
    return module, left


def slice_of_a_slice(x):
    y = torch.zeros(4, 6, 8)
    y[1:3, :, 2] = x[:, :, 0]
    y[:, ::2][..., 5:] = 7.0 * x[:1, :3, 5:]
    return y * 2


def overwritten(x):
    y = x + 1
    z = y[:, 0] * 3
    y[:, 0] = x[:, 1].double()
    y[:, -2:] = y[:, :2]
    return y, z, y[:, 1:].sum(-1)


@pytest.mark.parametrize("function", [rotate, slice_of_a_slice, overwritten])
def test_writes_become_scatters(function):
    module, left = functionalized(function, x())
    assert left == 0
    torch.testing.assert_close(module(x()), function(x()), rtol=0, atol=0)


def seen_by_a_view(x):
    y = x + 1
    view = y[:, :2]
    y[:, 0] = 0.5 * x[:, 1]
    return view * 2


def an_input(x):
    x[:, 0] = 0.5 * x[:, 1]
    return x * 2


def through_another_view(x):
    y = (x + 1).reshape(12, 8)
    y[:, 0] = 0.5 * y[:, 1]
    return y


@pytest.mark.parametrize("function", [seen_by_a_view, an_input, through_another_view])
def test_writes_that_are_seen_elsewhere_stay(function):
    module, left = functionalized(function, x())
    assert left == 1
    torch.testing.assert_close(module(x()), function(x()), rtol=0, atol=0)


def test_other_programs_are_left_alone():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval()
    with arm_ext.patched(disable=[FIX]):
        without = payload(quantize(model, (x(),), U85), (x(),), U85)
    assert payload(quantize(model, (x(),), U85), (x(),), U85) == without
