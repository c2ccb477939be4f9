# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""topk, sort and kthvalue, end to end: delegates, exact results, what is refused.

They move data, so every number is compared bit for bit: values with those of eager
(quantized: of the quantized eager program), and indices with those of a stable
sort, which torch's topk promises less than. Many ops share one program, because a
lowering takes longer than they do.

"""

import math

import arm_ext
import pytest
import torch
from arm_ext import fix
from arm_ext.coverage import coverage, reject_reasons
from arm_ext.fixes import topk
from arm_ext.programs._program import Model
from arm_ext.targets import lower, quantize, TARGETS
from arm_ext.verify import run
from lowered import Call, lower_and_run, passes, payload
from packaging.version import Version
from torch.export import Dim
from torch.utils._pytree import tree_leaves

FIX = "topk"
NEEDS = "argmin-argmax"  # carries the indices in int32
CAST = "dim_order_ops._to_dim_order_copy.default"
TIED = torch.randint(-3, 4, (2, 4, 6), generator=torch.Generator().manual_seed(0))
X = TIED.float() / 2


def first_of_equals(x, k, dim=-1, largest=True):
    """topk as it is lowered: of equal elements, the first place first."""
    values, indices = x.sort(dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k), indices.narrow(dim, 0, k)


def _forms(topk):
    def forward(m, x):
        return (
            *topk(x, 2),
            *topk(x, 3, 1),
            *topk(x, 6, largest=False),
            topk(x, 2, 0)[0],
            topk(x, 1, 1, False)[1],
            *topk(x.permute(2, 0, 1), 4, 0),
            *topk(x.reshape(1, 2, 2, 2, 6), 2, 3),
            topk(x[0, 0, :1], 1)[1],
        )

    return forward


def _sorts(m, x):
    return (
        *x.sort(1),
        x.argsort(dim=-1, descending=True, stable=True),
        *x.sort(stable=True, dim=0),
        x.kthvalue(3, 1, keepdim=True).values,
        x.kthvalue(5).values,
        x.kthvalue(1, 0).indices,
    )


FORMS, EXPECTED = Model(_forms(torch.topk)), Model(_forms(first_of_equals))
SORTS = Model(_sorts)
CHOSEN = {
    "vgf-fp": (TARGETS["vgf-fp"], None),
    "vgf int8": (TARGETS["vgf"], "int8"),
    "u85 int8": (TARGETS["ethos-u85-256"], "int8"),
    "u85 a16w8": (TARGETS["ethos-u85-256"], "a16w8"),
}


def _check(edge, wanted, *inputs):
    """One delegate, exact; outside of it one cast for each int64 output."""
    wanted = tree_leaves(wanted)
    outside = sum(value.dtype == torch.int64 for value in wanted)
    found = coverage(edge)
    assert (found.delegates, found.compute_ops) == (1, (CAST,) * outside)
    for actual, expected in zip(tree_leaves(run(edge, *inputs)), wanted, strict=True):
        assert actual.shape == expected.shape and actual.dtype == expected.dtype
        assert torch.equal(actual.nan_to_num(7.7), expected.nan_to_num(7.7))
    edge.to_executorch()


def _lower(model, x, target, quantization):
    """Return the lowered program and ``x`` as its ops see it."""
    if quantization is None:
        return lower(model, (x,), target), x
    quantized = quantize(model, (x,), target, quantization)
    codes, *_ = (n for n in quantized.graph.nodes if n.op == "call_function")
    scale, zero, least, most = codes.args[1:5]
    steps = torch.clamp(torch.round(x / scale) + zero, least, most)
    return lower(quantized, (x,), target), (steps - zero) * scale


@pytest.mark.parametrize("chosen", ["vgf-fp", "vgf int8", "u85 a16w8"])
def test_every_form_of_topk(chosen):
    edge, x = _lower(FORMS, X, *CHOSEN[chosen])
    _check(edge, EXPECTED(x), X)


@pytest.mark.parametrize("chosen", ["vgf-fp", "u85 int8"])
def test_sort_and_kthvalue(chosen):
    edge, x = _lower(SORTS, X, *CHOSEN[chosen])
    *expected, _ = SORTS(x)
    _check(edge, (*expected, first_of_equals(x, 1, 0, False)[1][0]), X)


def _long(topk):
    return lambda m, x: (
        *topk(x, 5),  # by rounds
        *topk(x, 4, largest=False),
        *topk(x, 300),  # by rank, in three blocks
        *topk(x[:, :520], 520, largest=False),
    )


@pytest.mark.parametrize("chosen", ["vgf-fp", "u85 int8"])
def test_long_rows(chosen):
    generator = torch.Generator().manual_seed(0)
    x = torch.relu(torch.randn(2, 600, generator=generator))  # a pile at the bottom
    edge, seen = _lower(Model(_long(torch.topk)), x, *CHOSEN[chosen])
    _check(edge, Model(_long(first_of_equals))(seen), x)


def _consumed(topk):
    def forward(m, x):
        best = topk(x.sum((1, 2)), 2)[1]
        values, indices = topk(x[0], 3, 1)
        return (
            x[best],
            x.index_select(0, best.flip(0)),
            x[0].gather(1, indices) * 2,
            values - values[:, :1],
            x[0, :, 0].index_put((topk(x[0, :, 1], 2)[1],), x[0, 2:, 2]),
        )

    return forward


def test_indices_and_values_that_are_used_inside():
    model = Model(_consumed(torch.topk))
    x = torch.randn(4, 4, 6, generator=torch.Generator().manual_seed(3))
    edge = lower(model, (x,), TARGETS["vgf"])
    assert coverage(edge).compute_ops == ()
    for actual, expected in zip(run(edge, x), Model(_consumed(first_of_equals))(x)):
        assert torch.allclose(actual, expected, rtol=0, atol=1e-6)
    edge.to_executorch()


@pytest.mark.parametrize("quantization", ["qat", "int8-per-tensor"])
def test_behind_a_convolution_however_it_is_quantized(quantization):
    """Values and the places of extrema; an unstable order of ties is left out."""

    def forward(conv, x):
        y = conv(x)
        return y.topk(3).values, y.sort(-1).values, y.argmax(-1), y.argmin(1)

    torch.manual_seed(0)
    module = Call(forward, torch.nn.Conv1d(4, 4, 3, padding=1)).eval()
    x = torch.randn(1, 4, 8)
    result = lower_and_run(module, (x,), TARGETS["ethos-u85-256"], quantization)
    assert result.covered.delegates == 1
    assert result.covered.compute_ops == (CAST, CAST)
    assert result.error() == 0


def test_rows_picked_by_quantized_scores():
    model = Model(lambda m, x: x[x.sum(-1).topk(3).indices])
    x = torch.arange(8.0)[:, None] * torch.ones(8, 4)
    x = x[torch.tensor([3, 0, 7, 5, 1, 6, 2, 4])]
    edge, seen = _lower(model, x, TARGETS["ethos-u85-256"], "int8")
    _check(edge, seen[[2, 5, 3]], x)


@pytest.mark.parametrize(
    ("dtype", "target"), [(torch.float32, "vgf-fp"), (torch.float16, "vgf")], ids=str
)
def test_nan_inf_and_the_ends_of_the_range(dtype, target):
    nan, inf, most = math.nan, math.inf, torch.finfo(dtype).max
    tiny = torch.finfo(dtype).tiny
    x = torch.tensor(
        [
            [nan, inf, -inf, most, -most, 0.0, tiny, nan],
            [-inf, -inf, -most, -inf, most, -inf, inf, -tiny],
            [0.0, -0.0, 0.0, -tiny, tiny, 1.0, -1.0, -0.0],
        ],
        dtype=dtype,
    )

    def both(topk):
        return lambda m, x: tuple(
            y for k in (3, 8) for big in (True, False) for y in topk(x, k, largest=big)
        )

    wanted = Model(both(lambda x, k, largest: first_of_equals(x, k, -1, largest)))(x)
    _check(lower(Model(both(torch.topk)), (x,), TARGETS[target]), wanted, x)


def test_bfloat16():
    model, x = Model(lambda m, x: tuple(x.topk(3, 1))), X.bfloat16()
    edge = lower(model, (x,), TARGETS["vgf-bf16"])
    _check(edge, first_of_equals(x, 3, 1), x)


@pytest.mark.parametrize(
    ("dtype", "target"),
    [
        (torch.int8, "ethos-u85-256"),
        (torch.int16, "vgf"),
        (torch.int32, "vgf"),
        (torch.int32, "ethos-u85-256"),
    ],
    ids=str,
)
def test_integers_to_their_last_value(dtype, target):
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    row = [least, 0, least + 1, least, most, most - 1, most] + [least] * 10
    x = torch.tensor([row, row[::-1]] * 2, dtype=dtype)

    def both(topk):
        return lambda m, x: (*topk(x, 1), *topk(x, 17), *topk(x, 1, -1, False),
                             *topk(x, 17, -1, False))  # fmt: skip

    wanted = Model(both(first_of_equals))(x)
    _check(lower(Model(both(torch.topk)), (x,), TARGETS[target]), wanted, x)


def test_values_and_indices_in_different_delegates():
    """The index must not be an int64 between two delegates."""

    def forward(m, x):
        values, indices = x.topk(3)
        return torch.relu(torch.special.i0(values)), indices

    model, x = Model(forward), torch.randn(4, 9)
    edge = lower(model, (x,), TARGETS["vgf"])
    actual, wanted = run(edge, x), model(x)
    assert torch.allclose(actual[0], wanted[0]) and torch.equal(actual[1], wanted[1])


REFUSED = {
    "no GATHER and no SCATTER": ("ethos-u55-128", "int8", (3, 8), 2, None),
    "has 4097 elements, more than 4096": ("vgf", None, (1, 4097), 2, None),
    "is empty": ("vgf", None, (3, 4), 0, None),
    "is not known": ("vgf", None, (3, 4), 2, (({0: Dim("n", min=2, max=8)},),)),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused_with_a_reason(reason):
    target, quantization, shape, k, dynamic = REFUSED[reason]
    target, x = TARGETS[target], torch.randn(shape)
    model = Model(lambda m, x: tuple(x.topk(k)))
    if quantization:
        model = quantize(model, (x,), target, quantization)
    with reject_reasons():
        edge = lower(model, (x,), target, dynamic_shapes=dynamic)
    told = [reason for left in coverage(edge).compute_left for reason in left.reasons]
    assert any(reason in text for text in told)
    assert coverage(edge).delegates == 0
    for actual, wanted in zip(run(edge, x), model(x)):
        assert torch.equal(actual, wanted)
    edge.to_executorch()


STOCK_GAPS = {
    "values": lambda m, x: x.topk(3).values,
    "sort": lambda m, x: x.sort(stable=True).values,
}


def _lower_and_check(model):
    _check(lower(model, (X,), TARGETS["vgf-fp"]), model(X), X)


@pytest.mark.parametrize("name", STOCK_GAPS)
def test_open_on_stock_and_closed_with_the_fix(name):
    model = Model(STOCK_GAPS[name])
    with arm_ext.patched(disable=[FIX]):
        assert not passes(_lower_and_check, model)
    with arm_ext.patched(only=[FIX, NEEDS]):
        assert passes(_lower_and_check, model)


def test_other_programs_are_what_they_were():
    model = Model(lambda m, x: torch.relu(x).split(2, 1)[1] + 1)
    with arm_ext.patched(only=()):
        stock = payload(model, (X,), TARGETS["vgf-fp"])
    with arm_ext.patched(only=[FIX, NEEDS]):
        assert payload(model, (X,), TARGETS["vgf-fp"]) == stock


def test_skipped_where_the_backend_sums_int32_to_int64():
    old = fix.Installed(executorch=Version("1.4.1"), torch=Version("2.13.0"))
    with arm_ext.patched(only=()):
        need = topk.needs(old)
    assert need.state is fix.State.SKIPPED
    assert "1.5.0" in need.reason
