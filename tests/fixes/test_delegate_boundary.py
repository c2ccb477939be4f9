# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What an integer delegate declares at its boundary is what its TOSA graph has."""

import arm_ext
import pytest
import torch
from arm_ext import verify
from arm_ext.partitioner.delegate_boundary import check_boundary, Value
from arm_ext.targets import lower, quantize, TARGETS
from executorch.exir.lowered_backend_module import LoweredBackendModule
from hypothesis import given, HealthCheck, settings, strategies as st
from lowered import Call, lower_and_run
from tosa.TosaGraph import TosaGraph

FIX = "delegate-boundary"
U85, U55, VGF_INT, VGF = (
    TARGETS[name] for name in ("ethos-u85-256", "ethos-u55-128", "vgf-int", "vgf")
)
INTEGER = [VGF_INT, U85, U55]
X = torch.randn(1, 4, 4, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def on_the_cpu(x):
    """``atan2`` is in no list of the backend."""
    return torch.atan2(x, x + 1)


def shared_split(first, second, x):
    left, right = first(x).split(4, 1)
    flat = right.flatten(2)
    return second(left).flatten(2) + on_the_cpu(flat), right


def shared_view(first, second, x):
    value = first(x)
    return (
        second(on_the_cpu(value)) + value[:, :4].flatten(2).reshape(1, 4, 4, 4),
        value,
    )


def chunks_to_three_places(first, second, x):
    a, b = first(x).chunk(2, 1)
    return second(a), on_the_cpu(b), a.amax(1) + b.amax(1)


MODELS = [shared_split, shared_view, chunks_to_three_places]


def model(function):
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(4, 8, 1), torch.nn.Conv2d(4, 4, 1)
    if function is shared_view:
        layers = layers[0], torch.nn.Conv2d(8, 4, 1)
    return Call(function, *layers).eval()


def delegate_outputs(edge):
    for node in edge.exported_program().graph.nodes:
        if "executorch_call_delegate" in str(node.target):
            yield from node.meta["val"]


@pytest.mark.parametrize("target", [*INTEGER, VGF], ids=lambda target: target.name)
@pytest.mark.parametrize("function", MODELS)
def test_numbers_of_the_quantized_program(function, target):
    result = lower_and_run(model(function), (X,), target, "int8")
    assert result.covered.delegates >= 2
    assert result.error() == 0


@pytest.mark.parametrize("target", [U85, U55, VGF], ids=lambda target: target.name)
def test_stock_declares_float(target):
    module = quantize(model(shared_split), (X,), target)
    with arm_ext.patched(only=()):
        edge = lower(module, (X,), target)
        assert any(value.dtype.is_floating_point for value in delegate_outputs(edge))
        with pytest.raises(RuntimeError, match="declares its output"):
            verify.run(edge, X)
    assert torch.equal(verify.run(lower(module, (X,), target), X)[0], module(X)[0])


def test_float_specification_may_hand_out_floats():
    module = Call(lambda x: on_the_cpu(torch.relu(x)))
    assert lower_and_run(module, (X,), VGF).error() < 1e-6


@pytest.mark.parametrize("target", [*INTEGER, VGF], ids=lambda target: target.name)
def test_what_is_right_stays_byte_identical(target):
    layers = torch.nn.Sequential(torch.nn.Conv2d(4, 4, 1), torch.nn.ReLU()).eval()
    module = quantize(layers, (X,), target)
    buffers = []
    for disable in ([], [FIX]):
        with arm_ext.patched(disable=disable):
            buffers.append(lower(module, (X,), target).to_executorch().buffer)
    assert buffers[0] == buffers[1]


# Inputs of which only the shape is read


def shapes_only(x, y, z):
    behind = on_the_cpu(y)
    filled = torch.full_like(y, 2.0) * x + z
    copied = behind.clone().copy_(z * 2.0)
    return filled, x - z, copied - z, torch.zeros_like(behind)


def boundaries(edge):
    """Yield the inputs that each delegate is given and those of its TOSA graph."""
    for module in edge.exported_program().graph_module.modules():
        if isinstance(module, LoweredBackendModule):
            tosa = verify.ReferenceDelegate(module).tosa
            block = TosaGraph.GetRootAs(tosa, 0).Regions(0).Blocks(0)
            user_inputs = module.original_module.graph_signature.user_inputs
            yield len(user_inputs), block.InputsLength()


@pytest.mark.parametrize("target", [VGF, U85, U55], ids=lambda target: target.name)
def test_partition_takes_in_what_it_reads(target):
    inputs = (X, X + 1, X * 2)
    module = Call(shapes_only)
    if target is not VGF:
        module = quantize(module, inputs, target)
    with arm_ext.patched(only=()):
        stock = lower(module, inputs, target)
        assert any(given > read for given, read in boundaries(stock))
    edge = lower(module, inputs, target)
    assert all(given == read for given, read in boundaries(edge))
    for got, wanted in zip(verify.run(edge, *inputs), module(*inputs), strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-6, rtol=0)
    assert edge.to_executorch().buffer


# The check when a delegate is lowered


def a_delegate():
    edge = lower(torch.nn.ReLU(), (X,), TARGETS["vgf-fp"])
    modules = edge.exported_program().graph_module.children()
    (delegate,) = (m for m in modules if isinstance(m, LoweredBackendModule))
    return delegate


INPUT, OUTPUT = (Value(name, X.dtype, tuple(X.shape)) for name in "xy")


@pytest.mark.parametrize(
    ("inputs", "outputs", "says"),
    [
        ([INPUT], [Value("y", torch.int8, tuple(X.shape))], "output 'y' as torch.int8"),
        ([Value("x", X.dtype, (1, 4, 4))], [OUTPUT], r"input 'x' as .* \[1, 4, 4\]"),
        ([INPUT], [OUTPUT, OUTPUT], "declares 2 outputs, but its TOSA graph has 1"),
        ([], [OUTPUT], "declares 0 inputs, but its TOSA graph has 1"),
    ],
)
def test_difference_names_the_tensor(inputs, outputs, says):
    flatbuffer = verify.tosa_of(a_delegate())
    check_boundary(([INPUT], [OUTPUT]), flatbuffer)
    with pytest.raises(RuntimeError, match=says):
        check_boundary((inputs, outputs), flatbuffer)


def test_shapes_that_tosa_writes_otherwise():
    """A scalar is one element there, and channels may come last."""
    scalar, image = Value("s", torch.bool, ()), Value("i", torch.int8, (1, 3, 4, 5))
    assert scalar.same_shape(()) and scalar.same_shape((1,))
    assert not scalar.same_shape((2,))
    assert image.same_shape((1, 4, 5, 3)) and not image.same_shape((1, 3, 20))


def test_delegate_with_a_wrong_boundary_is_not_built(monkeypatch):
    """As stock would go on with it."""
    monkeypatch.setattr(
        "arm_ext.partitioner.delegate_boundary.quantize_where_made", lambda *_: None
    )
    module = quantize(model(shared_split), (X,), U85)
    wrong = "declares its output .* as torch.float32"
    with arm_ext.patched(strict=True), pytest.raises(RuntimeError, match=wrong):
        lower(module, (X,), U85)
    with pytest.warns(UserWarning, match=wrong):
        edge = lower(module, (X,), U85)  # without it
    for actual, expected in zip(verify.run(edge, X), module(X), strict=True):
        assert (actual - expected).abs().max() < 0.05  # a quantization step


# Random quantized graphs


@st.composite
def graphs(draw):
    """Return steps; each makes a value from earlier ones."""
    steps = []
    for count in range(1, draw(st.integers(2, 6))):
        kind = draw(st.sampled_from(["conv", "relu", "cpu", "split", "add", "move"]))
        steps.append((kind, *(draw(st.integers(0, count - 1)) for _ in range(2))))
    return steps


class Random(torch.nn.Module):
    def __init__(self, steps):
        super().__init__()
        torch.manual_seed(len(steps))
        self.steps = steps
        self.convs = torch.nn.ModuleList(torch.nn.Conv2d(4, 4, 1) for _ in steps)

    def forward(self, x):
        values = [x]
        for (kind, i, j), conv in zip(self.steps, self.convs):
            a, b = values[i], values[j]
            if kind == "split":
                a = torch.cat(conv(a).split(2, 1)[::-1], 1)
            elif kind == "move":
                a = a.flatten(2).transpose(1, 2).reshape(1, 4, 4, 4)
            else:
                functions = {"conv": conv, "relu": torch.relu, "cpu": on_the_cpu}
                a = a + b if kind == "add" else functions[kind](a)
            values.append(a)
        used = {i for _, *inputs in self.steps for i in inputs}
        return [
            v for k, v in enumerate(values) if k not in used or k == len(values) - 1
        ]


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(graphs(), st.sampled_from([VGF_INT, U85, VGF]))
def test_random_quantized_graphs(steps, target):
    module = quantize(Random(steps).eval(), (X,), target)
    edge = lower(module, (X,), target)
    got, wanted = verify.run(edge, X), module(X)
    for g, w in zip(got, wanted, strict=True):
        assert g.dtype == w.dtype and torch.equal(g, w) or close(g, w)


def close(got, wanted):
    """Within two hundredths of the range: a step of each op on the way."""
    span = (wanted.max() - wanted.min()).clamp(min=1e-3)
    return (got - wanted).abs().max() <= 0.02 * span
