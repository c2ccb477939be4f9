# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""ConvTranspose1d, end to end, and the stock faults of ConvTranspose2d beside it."""

import arm_ext
import pytest
import torch
from arm_ext import verify
from arm_ext.coverage import coverage, reject_reasons
from arm_ext.targets import lower, quantize, TARGETS
from executorch.backends.arm.quantizer.quantizer_support import (
    TOSA_QUANTIZER_SUPPORT_DICT,
)
from executorch.exir import EdgeCompileConfig, to_edge
from lowered import Call, lower_and_run, steps_of
from torch.export import Dim, export

FIX = "conv-transpose1d"
VGF, U85, U55 = (TARGETS[t] for t in ("vgf", "ethos-u85-256", "ethos-u55-128"))
VGF_FP, VGF_INT, BF16 = (TARGETS[t] for t in ("vgf-fp", "vgf-int", "vgf-bf16"))
ConvT1d, ConvT2d = torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d

# Options of ConvTranspose1d(8, 8, ...); "shape" is that of the input.
CASES = {
    "stride 2": {"kernel_size": 4, "stride": 2, "padding": 1, "shape": (3, 8, 9)},
    "stride 1, no bias": {"kernel_size": 3, "bias": False},
    "stride 5 beyond the kernel": {"kernel_size": 2, "stride": 5},
    "output padding": {
        "kernel_size": 5,
        "stride": 3,
        "padding": 1,
        "output_padding": 2,
    },
    "dilation": {
        "kernel_size": 3,
        "stride": 2,
        "dilation": 3,
        "padding": 2,
        "output_padding": 2,
    },
    "groups": {"kernel_size": 4, "stride": 2, "padding": 1, "groups": 4},
    "depthwise": {"kernel_size": 3, "groups": 8},
    "padding beyond the kernel": {"kernel_size": 2, "stride": 2, "padding": 4},
    "length 1": {"kernel_size": 4, "stride": 2, "shape": (1, 8, 1)},
    "unbatched": {"kernel_size": 4, "stride": 2, "padding": 1, "shape": (8, 9)},
}
MOST = ("stride 2", "dilation", "groups", "padding beyond the kernel", "unbatched")


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


class SideBySide(torch.nn.Module):
    """One transposed convolution a case, each with an input of its own."""

    def __init__(self, names):
        super().__init__()
        torch.manual_seed(0)
        options = [dict(CASES[name]) for name in names]
        shapes = [each.pop("shape", (1, 8, 9)) for each in options]
        self.layers = torch.nn.ModuleList(ConvT1d(8, 8, **each) for each in options)
        self.inputs = tuple(torch.randn(shape) for shape in shapes)
        self.eval()

    def forward(self, *inputs):
        return tuple(layer(x) for layer, x in zip(self.layers, inputs, strict=True))


# One lowering takes all cases: they do not touch each other.
def run_cases(target, quantization=None, dtype=None, names=tuple(CASES)):
    model = SideBySide(names)
    inputs = model.inputs
    if dtype is not None:
        model, inputs = model.to(dtype), tuple(x.to(dtype) for x in inputs)
    return lower_and_run(model, inputs, target, quantization)


@pytest.mark.parametrize(
    ("target", "dtype", "tolerance", "names"),
    [
        (VGF, torch.float32, 1e-6, CASES),
        (VGF_FP, torch.float32, 1e-6, MOST),
        (VGF_FP, torch.float16, 2e-3, MOST[:3]),
        (BF16, torch.bfloat16, 2e-2, MOST[:3]),
    ],
    ids=["vgf", "vgf-fp", "fp16", "bf16"],
)
def test_float(target, dtype, tolerance, names):
    """Halves accumulate in fp32: one rounding of values up to 2 is the tolerance."""
    result = run_cases(target, dtype=dtype, names=tuple(names))
    assert result.one_delegate
    assert result.error() <= tolerance


INTEGER = [(VGF, "int8", MOST[:3]), (VGF_INT, "int8", MOST), (U85, "int8", CASES)]
INTEGER += [(U55, "int8", MOST), (U55, "a16w8", MOST), (U85, "a16w8", MOST[:3])]
INTEGER += [(U55, "int8-per-tensor", MOST[:3])]


@pytest.mark.parametrize(("target", "quantization", "names"), INTEGER)
def test_quantized(target, quantization, names):
    """int8 bit-exact, 16 bit within a step."""
    result = run_cases(target, quantization, names=tuple(names))
    assert result.one_delegate
    assert result.error() <= (1 + 1e-3 if quantization == "a16w8" else 0)


def upsampling(*behind):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv1d(8, 8, 3), ConvT1d(8, 8, 4, stride=2, padding=1), *behind
    ).eval()


def test_fuses_with_what_is_behind_as_two_dimensions_do():
    """There is no Q/DQ pair between the convolution and the activation."""
    x, target = (torch.randn(1, 8, 16),), U85
    layers = torch.nn.BatchNorm1d(8), torch.nn.ReLU6(), torch.nn.Conv1d(8, 4, 3)
    quantized = quantize(upsampling(*layers), x, target)
    fused = [n for n in quantized.graph.nodes if "hardtanh" in str(n.target)]
    assert [str(n.args[0].target) for n in fused] == ["aten.conv_transpose2d.input"]
    result = lower_and_run(quantized, x, target)
    assert result.one_delegate
    assert result.error() == 0


def test_qat_folds_the_batch_norm():
    model = torch.nn.Sequential(
        ConvT1d(8, 6, 4, stride=2, padding=1), torch.nn.BatchNorm1d(6), torch.nn.ReLU()
    )
    result = lower_and_run(model, (torch.randn(4, 8, 9),), U85, "qat")
    assert result.one_delegate
    assert result.error() == 0


def test_qat_leaves_groups_alone():
    model = ConvT1d(8, 6, 4, stride=2, groups=2)
    result = lower_and_run(model, (torch.randn(4, 8, 9),), U85, "qat")
    assert result.covered.compute_ops == ("aten.convolution.default",)
    assert "not marked as quantized" in result.reasons()


@pytest.mark.parametrize(("target", "quantization"), [(VGF, None), (U55, "a16w8")])
def test_to_edge_and_to_backend(target, quantization):
    model, x = upsampling(torch.nn.ReLU()), torch.randn(1, 8, 16)
    if quantization:
        model = quantize(model, (x,), target, quantization)
    program = export(model, (x,))
    before = str(program.graph)
    config = EdgeCompileConfig(_check_ir_validity=False)
    edge = to_edge(program, compile_config=config).to_backend(target.partitioner())
    assert coverage(edge).delegates == 1 and coverage(edge).compute_ops == ()
    # Three quantized ops in a row, each within a step of its own.
    most = 3 * steps_of(model, 1)[0] if quantization else 1e-6
    assert (verify.run(edge, x) - model(x)).abs().max() <= most
    assert str(program.graph) == before


# ConvTranspose2d


STOCK_FAULTS = {
    "bf16": (BF16, None, {"stride": 2}),
    "int8 dilation": (U85, "int8", {"stride": 2, "dilation": 2}),
    "int8 groups": (U85, "int8", {"stride": 2, "groups": 2}),
    "a16w8 on U55": (U55, "a16w8", {"stride": 2}),
    "a16w8 groups on U55": (U55, "a16w8", {"stride": (2, 1), "groups": 2}),
    "stride 3 on U55": (U55, "int8", {"stride": 3, "output_padding": 1}),
}


@pytest.mark.parametrize("name", STOCK_FAULTS)
def test_two_dimensions(name):
    target, quantization, options = STOCK_FAULTS[name]
    torch.manual_seed(0)
    model, x = ConvT2d(8, 6, 3, **options).eval(), torch.randn(1, 8, 5, 6)
    if target is BF16:
        model, x = model.to(torch.bfloat16), x.to(torch.bfloat16)
    result = lower_and_run(model, (x,), target, quantization)
    assert result.one_delegate
    most = {None: 0.0, "int8": 0.0, "a16w8": 1 + 1e-3}[quantization]
    assert result.error() <= most


@pytest.mark.parametrize("name", ["bf16", "int8 groups", "a16w8 on U55"])
def test_two_dimensions_stop_stock(name):
    target, quantization, options = STOCK_FAULTS[name]
    model, x = ConvT2d(8, 6, 3, **options).eval(), torch.randn(1, 8, 5, 6)
    if target is BF16:
        model, x = model.to(torch.bfloat16), x.to(torch.bfloat16)
    with arm_ext.patched(only=()), pytest.raises((Exception, SystemExit)):
        lower_and_run(model, (x,), target, quantization)


def test_stock_keeps_one_dimension_on_the_cpu():
    with arm_ext.patched(only=()):
        result = lower_and_run(upsampling(), (torch.randn(1, 8, 16),), U85, "int8")
        assert result.covered.compute_ops == ("aten.convolution.default",)


# Limits


class RunTimeWeight(torch.nn.Module):
    def forward(self, x, weight):
        return torch.nn.functional.conv_transpose1d(x, weight, stride=2)


REFUSED = {
    "weight an input": (
        RunTimeWeight(),
        (torch.randn(1, 8, 9), torch.randn(8, 6, 4)),
        VGF,
        None,
        "weight",
    ),
    "three dimensions": (
        torch.nn.ConvTranspose3d(2, 3, 2).eval(),
        (torch.randn(1, 2, 4, 4, 4),),
        VGF,
        None,
        "Only 2D",
    ),
    "kernel on U55": (
        ConvT1d(1, 1, 4100, stride=3).eval(),
        (torch.randn(1, 1, 9),),
        U55,
        "int8",
        "4096 elements at most",
    ),
    "size on U55": (
        ConvT1d(1, 1, 4, stride=2).eval(),
        (torch.randn(1, 1, 33000),),
        U55,
        "a16w8",
        "up to 65536",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_said(name):
    model, inputs, target, quantization, reason = REFUSED[name]
    if quantization:
        model = quantize(model, inputs, target, quantization)
    with reject_reasons():
        edge = lower(model, inputs, target)
    (left,) = coverage(edge).compute_left
    assert left.op == "aten.convolution.default"
    assert reason in "\n".join(left.reasons)
    assert edge.to_executorch().buffer


def test_a_dynamic_shape_is_refused():
    shapes = ({0: Dim("n", min=2, max=8)},)
    model, x = ConvT1d(8, 6, 4, stride=2).eval(), torch.randn(3, 8, 9)
    with reject_reasons():
        edge = lower(model, (x,), VGF, dynamic_shapes=shapes)
    (left,) = coverage(edge).compute_left
    assert "dynamic shape" in "\n".join(left.reasons)


def test_a_weight_of_two_and_an_output_of_two():
    torch.manual_seed(0)
    conv = ConvT1d(8, 6, 4, stride=2).eval()
    model = Call(lambda c, x: (c(x), c(x * 2).relu(), c(x) + 1), conv)
    result = lower_and_run(model, (torch.randn(1, 8, 9),), U85, "int8")
    assert result.one_delegate
    assert result.error() <= 1 + 1e-6


# The fix


@pytest.mark.parametrize(("target", "quantization"), [(U85, "int8"), (VGF_FP, None)])
def test_what_stock_takes_is_untouched(target, quantization):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(8, 8, 3), ConvT2d(8, 6, 4, stride=2), torch.nn.ReLU()
    ).eval()
    x = (torch.randn(1, 8, 5, 6),)

    def pte():
        module = quantize(model, x, target, quantization) if quantization else model
        return lower(module, x, target).to_executorch().buffer

    with arm_ext.patched(only=()):
        stock = pte()
    with arm_ext.patched(only=(FIX,)):
        assert pte() == stock


def test_revert_takes_it_out_of_the_lists():
    pattern = (torch.ops.aten.conv_transpose1d.default,)
    assert pattern in TOSA_QUANTIZER_SUPPORT_DICT
    arm_ext.revert()
    assert pattern not in TOSA_QUANTIZER_SUPPORT_DICT
