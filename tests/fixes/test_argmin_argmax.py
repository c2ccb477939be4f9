# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""argmin and argmax, end to end: delegates, exact indices, and what is refused.

An index is an integer, so every number is compared bit for bit: floats with eager,
integers with the quantized eager program. Many ops share one program, because a
lowering takes longer than they do.

"""

import math

import arm_ext
import pytest
import torch
from arm_ext.coverage import coverage, reject_reasons
from arm_ext.programs._program import Model
from arm_ext.targets import lower, quantize, TARGETS
from arm_ext.verify import run
from executorch.exir import EdgeCompileConfig, to_edge
from lowered import passes, payload
from torch.export import Dim, export
from torch.utils._pytree import tree_leaves

FIX = "argmin-argmax"
CAST = "dim_order_ops._to_dim_order_copy.default"
TIED = torch.randint(-3, 4, (2, 4, 6), generator=torch.Generator().manual_seed(0))
X = TIED.float() / 2


def _every_form(m, x):
    """Ten ways to ask, on a tensor in which most extrema occur twice."""
    return (
        x.argmin(),
        x.argmax(keepdim=True),
        x.argmin(0),
        x.argmax(1, keepdim=True),
        x.argmin(-1, keepdim=True),
        x.permute(2, 0, 1).argmax(1),
        x.reshape(48).argmin(0),
        x.reshape(1, 2, 2, 2, 6).argmax(3),
        x[:, :1].argmin(1),
        x[:, ::2].argmax(-2),
    )


def _consumed(m, x):
    """Indices that are read inside, moved about and returned beside."""
    best = x.argmax(1)
    return (
        x[0].argmin(1),
        x[0][x[0].argmin(0)],
        x[0].index_select(0, x[1].argmax(0)),
        x[0][torch.arange(4), x[0].argmax(1)],
        x[0][:, x[1].argmin(0)],
        x.gather(1, best.unsqueeze(1).expand(2, 3, 6)),
        m.layers[0](x[0].argmin(1)),
        torch.cat([x[0].argmax(0), x[1].argmin(0)]).reshape(2, 6),
        x[0].argmax(1).to(torch.int32),
        x[1].argmax(1).to(torch.float32) * 0.5,
    )


FORMS = Model(_every_form)
CONSUMED = Model(_consumed, torch.nn.Embedding(6, 4))


def _check(edge, model, *inputs, outside=None):
    """One delegate, exact; outside of it one cast for each int64 output."""
    with torch.no_grad():
        expected = tree_leaves(model(*inputs))
    if outside is None:
        outside = sum(value.dtype == torch.int64 for value in expected)
    found = coverage(edge)
    assert (found.delegates, found.compute_ops) == (1, (CAST,) * outside)
    for actual, wanted in zip(tree_leaves(run(edge, *inputs)), expected, strict=True):
        assert actual.shape == wanted.shape and actual.dtype == wanted.dtype
        assert torch.equal(actual, wanted)
    edge.to_executorch()


def test_every_form_in_float():
    _check(lower(FORMS, (X,), TARGETS["vgf-fp"]), FORMS, X)


@pytest.mark.parametrize(
    ("target", "quantization"),
    [
        ("vgf", "int8"),
        ("ethos-u85-256", "a16w8"),
    ],
)
def test_every_form_quantized(target, quantization):
    target = TARGETS[target]
    quantized = quantize(FORMS, (X,), target, quantization)
    _check(lower(quantized, (X,), target), quantized, X)


def test_consumers_in_float():
    _check(lower(CONSUMED, (X,), TARGETS["vgf"]), CONSUMED, X)


@pytest.mark.parametrize("target", ["vgf-int", "ethos-u85-256"])
def test_consumers_quantized(target):
    target = TARGETS[target]
    model = Model(lambda m, x: _consumed(m, x)[:9], torch.nn.Embedding(6, 4))
    quantized = quantize(model, (X,), target)
    _check(lower(quantized, (X,), target), quantized, X)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_nan_inf_and_zeros_are_as_in_aten(dtype):
    nan, inf = math.nan, math.inf
    rows = [
        [1, nan, -2, nan],
        [nan, nan, inf, -inf],
        [inf, 3, inf, -inf],
        [-inf, 0, -inf, inf],
        [0.0, -0.0, 0.0, -0.0],
        [-0.0, 0.0, -0.0, 0.0],
    ]
    x = torch.tensor(rows, dtype=dtype)
    model = Model(lambda m, x: (x.argmin(1), x.argmax(1), x.argmin(), x.argmax(0)))
    _check(lower(model, (x,), TARGETS["vgf"]), model, x)


def _max_and_min(m, x):
    _, last = x.min(-1)
    return (*x.max(1), *torch.relu(x).min(0, keepdim=True), last)


def test_max_and_min_with_their_index_in_float():
    model = Model(_max_and_min)
    x = X.clone()
    x[0, 1:3, 2] = math.nan
    edge = lower(model, (x,), TARGETS["vgf"])
    assert (coverage(edge).delegates, coverage(edge).compute_ops) == (1, (CAST,) * 3)
    for actual, wanted in zip(run(edge, x), model(x)):
        assert torch.equal(actual.nan_to_num(7.7), wanted.nan_to_num(7.7))


def test_max_and_min_with_their_index_quantized():
    """Quantizing stops at them on stock."""
    target, model = TARGETS["ethos-u85-256"], Model(_max_and_min)
    with arm_ext.patched(only=()), pytest.raises(Exception):
        quantize(model, (X,), target)
    quantized = quantize(model, (X,), target)
    _check(lower(quantized, (X,), target), quantized, X)


def test_bfloat16():
    model, x = Model(lambda m, x: (x.argmin(1), x.argmax())), X.bfloat16()
    _check(lower(model, (x,), TARGETS["vgf-bf16"]), model, x)
    edge = lower(model, (x,), TARGETS["vgf"])
    assert coverage(edge).delegates == 0


EXTREMES = {
    dtype: torch.tensor(
        [[least + 1, least, 0], [least, least, most], [most, most - 1, most]],
        dtype=dtype,
    )
    for dtype in (torch.int8, torch.int16, torch.int32)
    for least, most in [(torch.iinfo(dtype).min, torch.iinfo(dtype).max)]
}


@pytest.mark.parametrize("target", ["vgf", "ethos-u85-256"])
@pytest.mark.parametrize("dtype", EXTREMES, ids=str)
def test_integers_to_their_last_value(dtype, target):
    model = Model(
        lambda m, x: (x.argmin(1), x.argmax(1), x.argmin(), x.argmax(0, keepdim=True))
    )
    x = EXTREMES[dtype]
    _check(lower(model, (x,), TARGETS[target]), model, x)


def test_behind_and_before_other_quantized_ops():
    """Operands whose integer dtype shows late in the pass pipeline."""
    target = TARGETS["ethos-u85-256"]
    conv = torch.nn.Conv1d(4, 4, 3, padding=1)
    model = Model(
        lambda m, x: (
            torch.exp(x).argmin(1),
            torch.relu(m.layers[0](x)).argmax(1),
            torch.sigmoid(x * x).sum(1).argmin(-1),
            (x + x[:, :1]).mean(1).argmax(-1),
        ),
        conv,
    )
    quantized = quantize(model, (X,), target)
    edge = lower(quantized, (X,), target)
    assert (coverage(edge).delegates, coverage(edge).compute_ops) == (1, (CAST,) * 4)
    # Arithmetic may be a step off, which may choose another place; not these.
    actual, wanted = run(edge, X), quantized(X)
    assert torch.equal(actual[0], wanted[0])
    edge.to_executorch()


def test_u55_takes_the_last_dimension():
    target = TARGETS["ethos-u55-128"]
    x = torch.randn(2, 3, 1, 2, 127, generator=torch.Generator().manual_seed(1))
    # Not slices of one another: of those Vela 5.1.0 crashes, argmin or not.
    model = Model(
        lambda m, x: (
            x.argmin(-1),
            x.reshape(2, 3, 2, 127).argmax(-1, keepdim=True),
            x.reshape(12, 127).argmin(1),
            x.reshape(1524)[:100].argmin(),
        )
    )
    quantized = quantize(model, (x,), target)
    _check(lower(quantized, (x,), target), quantized, x)


REFUSED_ON_U55 = {
    "takes the last dimension only": (lambda m, x: x.argmin(0), (3, 4), "int8"),
    "takes 127 elements at most, not 128": (
        lambda m, x: x.argmax(-1),
        (2, 128),
        "int8",
    ),
    "takes 65536 results at most, not 65537": (
        lambda m, x: x.argmax(-1),
        (65537, 2),
        "int8",
    ),
    "takes int8, not torch.int16": (lambda m, x: x.argmin(-1), (3, 4), "a16w8"),
}


def _reasons(edge):
    return [reason for left in coverage(edge).compute_left for reason in left.reasons]


@pytest.mark.parametrize("reason", REFUSED_ON_U55)
def test_u55_says_what_it_does_not_take(reason):
    forward, shape, quantization = REFUSED_ON_U55[reason]
    target, x = TARGETS["ethos-u55-128"], torch.randn(shape)
    quantized = quantize(Model(forward), (x,), target, quantization)
    with reject_reasons():
        edge = lower(quantized, (x,), target)
    assert any(reason in told for told in _reasons(edge))
    assert torch.equal(run(edge, x), quantized(x))
    edge.to_executorch()


def test_a_cast_of_an_index_that_stays_on_the_cpu_stays_there_too():
    """Stock delegates the cast alone and stops at its int64 input."""
    target = TARGETS["ethos-u55-128"]
    quantized = quantize(Model(lambda m, x: x[x.argmax(0)] + x), (X[0, :, :4],), target)
    with reject_reasons():
        edge = lower(quantized, (X[0, :, :4],), target)
    assert any("stays on the CPU" in told for told in _reasons(edge))
    edge.to_executorch()


DYNAMIC = {
    "size of the dimension is not known": lambda m, x: x.argmin(0),
    "whose size is not known": lambda m, x: x.argmin(-1, keepdim=True),
}


@pytest.mark.parametrize("reason", DYNAMIC)
def test_dynamic_shapes_that_are_refused(reason):
    model, x = Model(DYNAMIC[reason]), torch.randn(3, 5)
    with reject_reasons():
        edge = lower(
            model,
            (x,),
            TARGETS["vgf"],
            dynamic_shapes=(({0: Dim("n", min=2, max=8)},),),
        )
    assert coverage(edge).delegates == 0
    assert any(reason in told for told in _reasons(edge))
    other = torch.randn(6, 5)
    assert torch.equal(run(edge, other), model(other))


def test_a_written_place_is_narrowed_only_where_it_is_the_only_one():
    def forward(m, x):
        one = x.index_put((x[:, 0].argmax(0, keepdim=True),), x[:1])
        return one, x.index_put((x.argmax(0),), x)  # may name a row twice

    model, x = Model(forward), torch.randn(6, 6)
    with reject_reasons():
        edge = lower(model, (x,), TARGETS["vgf"])
    assert coverage(edge).compute_ops == (CAST, "aten.index_put.default")
    for actual, wanted in zip(run(edge, x), model(x)):
        assert torch.equal(actual, wanted)


def test_through_to_edge_and_to_backend():
    program = export(CONSUMED, (X,))
    edge = to_edge(program, compile_config=EdgeCompileConfig(_check_ir_validity=False))
    _check(edge.to_backend(TARGETS["vgf"].partitioner()), CONSUMED, X)


STOCK_GAPS = {
    "argmin": lambda m, x: x.argmin(-1).to(torch.int32),
    "keepdim": lambda m, x: x.argmax(1, keepdim=True).to(torch.int32),
    "int64": lambda m, x: x[0][x[0].argmax(0)],
}


def _lower_and_check(model):
    _check(lower(model, (X,), TARGETS["vgf-fp"]), model, X)


@pytest.mark.parametrize("name", STOCK_GAPS)
def test_open_on_stock_and_closed_with_the_fix(name):
    model = Model(STOCK_GAPS[name])
    # What that one does includes the int64.
    with arm_ext.patched(disable=[FIX, "int64-arithmetic"]):
        assert not passes(_lower_and_check, model)
    with arm_ext.patched(only=[FIX]):
        assert passes(_lower_and_check, model)


def test_other_programs_are_what_they_were():
    # An argmax that stock takes, and a reduction beside it.
    model = Model(
        lambda m, x: ((x * 2).argmax(-1).to(torch.int32), x.amax(1, keepdim=True))
    )
    with arm_ext.patched(only=()):
        stock = payload(model, (X,), TARGETS["vgf-fp"])
    with arm_ext.patched(only=[FIX]):
        assert payload(model, (X,), TARGETS["vgf-fp"]) == stock
