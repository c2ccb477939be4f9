# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Models with dynamic shapes are quantized, as the static ones are."""

import arm_ext
import pytest
import torch
from arm_ext import verify
from arm_ext.coverage import coverage
from arm_ext.fix import State
from arm_ext.targets import lower, TARGETS
from executorch.backends.arm.ethosu import EthosUCompileSpec
from executorch.backends.arm.quantizer import (
    EthosUQuantizer,
    get_symmetric_quantization_config,
)
from torch.export import Dim, export
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

OURS = ("guards-module", "annotation-symint")
BATCH = Dim("batch", min=2, max=64)


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def layer_norm():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)).eval()


def mean():
    return Function(lambda x: x.mean(-1))


def batch_shapes(make):
    return ({0: BATCH},) if make is layer_norm else (({0: BATCH},),)


def quantize(model, args, shapes=None, composable=True):
    quantizer = EthosUQuantizer(EthosUCompileSpec("ethos-u85-256"), composable)
    quantizer.set_global(get_symmetric_quantization_config())
    module = export(model, args, dynamic_shapes=shapes).module(check_guards=False)
    prepared = prepare_pt2e(module, quantizer)
    prepared(*args)
    return convert_pt2e(prepared)


@pytest.mark.parametrize("composable", (True, False), ids=("composable", "legacy"))
@pytest.mark.parametrize("make", (layer_norm, mean), ids=("layer_norm", "mean"))
def test_stock_fails_and_patched_equals_the_static_model(make, composable):
    x = torch.randn(4, 8)
    shapes = batch_shapes(make)
    with arm_ext.patched(only=()), pytest.raises(NameError):
        quantize(make(), (x,), shapes, composable)
    with arm_ext.patched(only=OURS):
        dynamic = quantize(make(), (x,), shapes, composable)
        static = quantize(make(), (x,), None, composable)
    assert torch.equal(dynamic(x), static(x))
    # Another batch than the one seen at export and calibration.
    assert torch.equal(dynamic(x[:3]), static(x)[:3])
    assert torch.equal(dynamic(torch.cat((x, x)))[4:], static(x))


def test_a_size_in_the_model_is_no_device():
    model = Function(lambda x: (x + 1).reshape(x.shape[0] * 2, -1))
    x = torch.randn(4, 8)
    with arm_ext.patched(only=()), pytest.raises(ValueError, match="device"):
        quantize(model, (x,), (({0: BATCH},),))
    with arm_ext.patched(only=OURS):
        converted = quantize(model, (x,), (({0: BATCH},),))
        static = quantize(model, (x,))
    assert torch.equal(converted(x), static(x))
    assert converted(x[:2]).shape == (4, 4)


def test_validate_still_reports_two_devices():
    graph = torch.fx.Graph()
    first, second = graph.placeholder("first"), graph.placeholder("second")
    first.meta["val"] = torch.empty(2)
    second.meta["val"] = torch.empty(2, device="meta")
    graph.output(graph.call_function(torch.ops.aten.add.Tensor, (first, second)))
    quantizer = EthosUQuantizer(EthosUCompileSpec("ethos-u85-256"))
    with arm_ext.patched(only=OURS):
        with pytest.raises(ValueError, match="different device"):
            quantizer.validate(torch.fx.GraphModule(torch.nn.Module(), graph))


@pytest.mark.parametrize(
    "shape, dims, dynamic",
    (
        ((4, 6, 8), (0, 2), {1: Dim("d", min=2, max=9)}),
        ((2, 3, 4, 5, 6), (3, 4), {0: Dim("a", min=2), 1: Dim("b", min=2)}),
        ((6, 8), -1, {0: 2 * Dim("half", min=1, max=9)}),
    ),
    ids=("inner", "rank5", "derived"),
)
def test_mean_over_dynamic_shapes(shape, dims, dynamic):
    x = torch.randn(shape)
    model = Function(lambda x: (x * 1).mean(dims))
    with arm_ext.patched(only=OURS):
        converted = quantize(model, (x,), ((dynamic,),))
    # Two int8 steps of the input, whose range is below 8, and of the sum; the
    # values of the smaller input lie in the range seen in calibration.
    other = x[tuple(slice(0, 2 if dim in dynamic else None) for dim in range(x.ndim))]
    for value in (x, other):
        want = model(value)
        assert converted(value).shape == want.shape
        assert (converted(value) - want).abs().max() <= 0.1


@pytest.mark.parametrize(
    "make, target",
    ((mean, "vgf"), (mean, "vgf-int"), (layer_norm, "ethos-u85-256")),
    ids=("vgf", "vgf-int", "ethos-u85-256"),
)
def test_lowers_as_the_static_model_when_exported_for_one_batch(make, target):
    x = torch.randn(4, 8)
    with arm_ext.patched(only=OURS):
        edge, static = (
            lower(quantize(make(), (x,), shapes), (x,), TARGETS[target])
            for shapes in (batch_shapes(make), None)
        )
    assert coverage(edge).delegates == 1
    assert coverage(edge).compute_ops == ()
    assert torch.equal(verify.run(edge, x), verify.run(static, x))
    edge.to_executorch()


def test_dynamic_batch_lowers_to_ethosu_with_the_right_numbers():
    x = torch.randn(4, 8)
    with arm_ext.patched(only=OURS):
        converted = quantize(layer_norm(), (x,), ({0: BATCH},))
        edge = lower(
            converted, (x,), TARGETS["ethos-u85-256"], dynamic_shapes=({0: BATCH},)
        )
    for batch in (4, 7):
        value = torch.randn(batch, 8)
        assert torch.equal(verify.run(edge, value), converted(value))
    edge.to_executorch()


def test_is_skipped_without_torchs_helper(monkeypatch):
    with arm_ext.patched(only=()):
        monkeypatch.delattr(torch.fx.Graph, "materialize_symints")
        with arm_ext.patched(only=("annotation-symint",)) as status:
            (row,) = (row for row in status if row.fix == "annotation-symint")
        monkeypatch.undo()
    assert row.state is State.SKIPPED
    assert "materialize_symints" in row.reason


def test_is_not_applied_over_a_pipeline_that_makes_sizes_nodes():
    from arm_ext.fixes import annotation_symint

    with arm_ext.patched(only=()):
        assert annotation_symint.needs(None).state is State.APPLIED
    with arm_ext.patched(only=OURS):
        assert annotation_symint.needs(None).state is State.UPSTREAM
