# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""int64 arithmetic, end to end: delegates, exact numbers, and what is refused.

Integers are exact: every number is compared bit for bit with eager. Many ops share one
program, because a lowering takes longer than they do.

"""

from random import Random

import arm_ext
import pytest
import torch
from arm_ext.coverage import coverage, reject_reasons
from arm_ext.programs._program import Model
from arm_ext.targets import lower, quantize, TARGETS
from arm_ext.verify import run
from executorch.exir import EdgeCompileConfig, to_edge
from hypothesis import given, settings, strategies as st
from integer_models import IntegerModel
from lowered import passes
from torch.export import Dim, export
from torch.utils._pytree import tree_leaves

FIX = "int64-arithmetic"
CAST = "dim_order_ops._to_dim_order_copy.default"
X = torch.randn(6, 8, generator=torch.Generator().manual_seed(0))
LEAST, MOST = torch.iinfo(torch.int32).min, torch.iinfo(torch.int32).max


def _same(edge, model, *inputs):
    with torch.no_grad():
        expected = tree_leaves(model(*inputs))
    for actual, wanted in zip(tree_leaves(run(edge, *inputs)), expected, strict=True):
        assert actual.shape == wanted.shape and actual.dtype == wanted.dtype
        assert torch.equal(actual, wanted)


def _check(edge, model, *inputs, cpu=()):
    """One delegate, the ops on the CPU that are expected, exact numbers."""
    found = coverage(edge)
    assert (found.delegates, found.compute_ops) == (1, cpu)
    _same(edge, model, *inputs)
    edge.to_executorch()


def _reasons(edge):
    return [reason for left in coverage(edge).left for reason in left.reasons]


# Arithmetic --------------------------------------------------------------------------


def _to_the_ends(m, x, y):
    """All ops where an operand, an intermediate or the result is as far as it goes."""
    i = x.clamp(-(2**30), 2**30 - 1).long()
    small = y.clamp(-7, 7).long()
    divisor = small.abs() + 1
    return torch.stack(
        [
            x.long().clamp(-5, MOST),
            i * 2,
            i + i,
            i - i.flip(0),
            torch.add(i, small, alpha=3),
            -i,
            (i - i.flip(1)).abs(),
            i.sign(),
            i // 7,
            i // -7,
            i % 7,
            i % -7,
            i % (2**30 - 1),
            i // divisor,
            i % divisor,
            i % -divisor,
            torch.div(i, -divisor, rounding_mode="trunc"),
            torch.minimum(i, small),
            torch.maximum(i, -small),
            torch.where(i != small, i, small * 3),
            i.masked_fill(i < 0, 2**30),
            i & small,
            i | 1023,
            i ^ -1,
            ~i,
            small << 8,
            small.abs() << divisor,
            i >> 3,
            i >> divisor,
            (i // 8).cumsum(1),
            small.cumsum(0),
            (i >= small).cumsum(1) - 1,
            (i // 8).sum(1, keepdim=True).expand(6, 8),
            (i > 0).sum().expand(6, 8),
            i.amax(1, keepdim=True).expand(6, 8),
            i.amin(0).expand(6, 8),
            small**3,
            i + torch.arange(8),
            torch.nn.functional.pad(i, (1, 0), value=-9)[:, :8],
            torch.full_like(i, 11) - small,
        ]
    )


ENDS = torch.tensor([LEAST, LEAST + 1, -(2**30), -8, 0, 7, 2**30 - 1, MOST])
ENDS = torch.stack([ENDS.roll(n) for n in range(6)]).to(torch.int32)


@pytest.mark.parametrize("target", ["vgf", "ethos-u85-256"])
def test_values_at_the_ends_of_the_ranges(target):
    model, inputs = Model(_to_the_ends), (ENDS, ENDS.flip(1) // 5)
    _check(lower(model, inputs, TARGETS[target]), model, *inputs, cpu=(CAST,))


@settings(max_examples=3, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**32))
def test_random_programs(seed):
    model, random = IntegerModel(seed, ops=12), Random(seed)
    inputs = model.inputs(random)
    edge = lower(model, inputs, TARGETS["vgf"])
    for _ in range(3):
        _same(edge, model, *inputs)
        inputs = model.inputs(random)


def test_cumsum_of_int32():
    """Stock makes a convolution of it that TOSA does not have."""
    model = Model(
        lambda m, x: (
            x.cumsum(1, dtype=torch.int32),
            x[:5, 0].cumsum(0, dtype=torch.int32),
            x[:1].cumsum(0, dtype=torch.int32),
            x.reshape(2, 3, 8).cumsum(-2, dtype=torch.int32),
        )
    )
    x = ENDS // 8
    with arm_ext.patched(only=()), pytest.raises(Exception):
        lower(model, (x,), TARGETS["vgf"])
    _check(lower(model, (x,), TARGETS["vgf"]), model, x)


# What models do with it --------------------------------------------------------------


def _policy(m, x):
    """Indices that are computed with, read inside and handed out."""
    i = x.argmax(1)
    values, top = x.topk(3, 0)
    return (
        i % 7,
        x[:, (x.argmax(0) * 2 + 1) % 8],
        x[:, i - 7],  # counted from the end
        x[top[0] // 2],
        x.gather(1, ((i + 3) % 8)[:, None]),
        m.layers[0](i // 2),
        m.table[i + 1],
        torch.where(i > 3, i, 0).to(torch.float32),
        i,
    )


TABLE = torch.tensor([5, -3, MOST, LEAST, 0, 1, 2, 3, 4])


def test_index_arithmetic():
    model = Model(_policy, torch.nn.Embedding(4, 5), table=TABLE)
    # i, i % 7 and the entries of the table are int64 outputs.
    _check(lower(model, (X,), TARGETS["vgf"]), model, X, cpu=(CAST,) * 3)


def test_index_arithmetic_between_quantized_ops():
    target = TARGETS["ethos-u85-256"]
    model = Model(
        lambda m, x: (
            m.layers[1](m.layers[0](x.argmax(1) % 3)),
            torch.relu(x)[:, (x.argmin(0) + 5) % 8] + 1.0,
        ),
        torch.nn.Embedding(3, 4),
        torch.nn.Linear(4, 4),
    )
    quantized = quantize(model, (X,), target)
    edge = lower(quantized, (X,), target)
    assert (coverage(edge).delegates, coverage(edge).compute_ops) == (1, ())
    for actual, wanted in zip(run(edge, X), quantized(X)):
        assert (actual - wanted).abs().max() < 0.05  # a quantisation step
    edge.to_executorch()


def _language_model(m, ids):
    words, places = m.layers
    mask = ids != 0
    place = ((mask.cumsum(-1) - 1) * mask).clamp(min=0)
    scores = words(ids) + places(place) + places(torch.arange(8))
    causal = torch.arange(8)[:, None] >= torch.arange(8)
    return scores.masked_fill(~(mask[..., None] & causal), 0.0), mask.sum(-1), ids


def test_token_ids_enter_by_one_cast():
    model = Model(_language_model, torch.nn.Embedding(9, 8), torch.nn.Embedding(8, 8))
    ids = torch.tensor([[3, 8, 1, 0, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6, 7, 0]])
    # The ids are an output too: those are the program's own.
    _check(lower(model, (ids,), TARGETS["vgf"]), model, ids, cpu=(CAST, CAST))


def _timestep(m, x, step, other):
    shown = other[:, None].t()
    return (
        x * step[:, None].float(),
        step.view(2, 3).t().float() + x[:3, :2],
        x + shown.float(),
        shown,
    )


def test_an_int64_is_cast_before_it_is_moved():
    model, step = Model(_timestep), torch.tensor([3, -1, 0, 2**40 + 1, 7, 2**24 + 1])
    other = torch.arange(8)
    # The last of the four is an output: that one is moved as it is.
    moves = "aten.unsqueeze_copy.default", "aten.permute_copy.default"
    edge = lower(model, (X, step, other), TARGETS["vgf"])
    assert sorted(coverage(edge).compute_ops) == sorted((CAST, CAST, CAST, *moves))
    assert coverage(edge).delegates == 1
    _same(edge, model, X, step, other)
    with arm_ext.patched(disable=[FIX]):
        stock = lower(model, (X, step, other), TARGETS["vgf"])
    assert "aten.view_copy.default" in coverage(stock).compute_ops


# What is left ------------------------------------------------------------------------


def _left(m, x, ids, y):
    i = x.argmax(1)
    return (
        torch.relu(x),
        i * 2**30,
        i % (y.clamp(0, 3).long()),
        (i - 8) * 2**28 % 7,  # fits, but not on the way
        ids % 7,
        x.to(torch.int64) + 1,
        ids.clamp(0, 9) + 1,
    )


REASONS = (
    "aten_argmax_default * 1073741824 reaches 7516192768",
    "the divisor may be zero",
    "floor(self / other) * other reaches",
    "inputs_1 may hold any value of its dtype",
    "casts on the CPU for 1 ops",
)


def test_refused_with_the_reason_in_the_report():
    ids, y = torch.tensor([2**40, -5, 3]), torch.tensor([1, 2, 3, 1, 2, 3]).int()
    model = Model(_left)
    with reject_reasons():
        edge = lower(model, (X, ids, y), TARGETS["vgf"])
    _same(edge, model, X, ids, y)
    told = "\n".join(_reasons(edge))
    assert [reason for reason in REASONS if reason not in told] == []
    edge.to_executorch()


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("vgf-fp", "on int32 needs the INT profile"),
        ("ethos-u55-128", "Ethos-U55 has no aten.remainder.Scalar on int32"),
    ],
)
def test_divisions_that_would_not_be_exact_are_refused(target, reason):
    target = TARGETS[target]
    model = Model(lambda m, x: ((x + x).argmax(-1) % 7, torch.relu(x)))
    module = quantize(model, (X,), target) if target.is_ethosu else model
    with reject_reasons():
        edge = lower(module, (X,), target)
    assert coverage(edge).delegates == 1
    assert any(reason in told for told in _reasons(edge))
    _same(edge, module, X)
    edge.to_executorch()


def test_dynamic_shapes():
    def forward(m, x):
        i = x.argmax(1)
        return x + torch.arange(x.shape[0])[:, None], i % 7, i + x.shape[0]

    model = Model(forward)
    dynamic = {"inputs": ({0: Dim("n", min=2, max=16)},)}
    # The reference model takes no dynamic shape, so there are no numbers.
    edge = lower(model, (X,), TARGETS["vgf"], dynamic_shapes=dynamic)
    assert coverage(edge).delegates == 1
    edge.to_executorch()


def _state(m, x):
    """A counter that the program writes, a branch, and no elements at all."""
    m.step.add_(1)
    i = x.argmax(1)
    return (
        x + (m.step % 3).float(),
        m.step * 2,
        m.layers[0](i % 4),
        torch.cond(x.sum() > 0, lambda a: a * 3 % 7, lambda a: a - 1, (i,)),
        torch.cat([i, torch.zeros(0, dtype=torch.int64)]) * 2 > 3,
    )


@pytest.mark.parametrize("step", [MOST, 2**40])
def test_what_is_not_known_stays_int64(step):
    def model():
        torch.manual_seed(0)
        made = Model(_state, torch.nn.Embedding(4, 5))
        made.register_buffer("step", torch.tensor([step]))
        return made

    edge = lower(model(), (X,), TARGETS["vgf"])
    assert {"aten.remainder.Scalar", "cond"} <= set(coverage(edge).compute_ops)
    _same(edge, model(), X)
    edge.to_executorch()


# The fix -----------------------------------------------------------------------------

SIMPLE = Model(lambda m, x: (x.argmax(-1) % 7, x[x.argmin(0) // 2]))


def _lower_and_check(target):
    _check(lower(SIMPLE, (X,), TARGETS[target]), SIMPLE, X, cpu=(CAST,))


def test_open_on_stock_and_closed_with_the_fix():
    with arm_ext.patched(disable=[FIX]):
        assert not passes(_lower_and_check, "vgf")
    assert passes(_lower_and_check, "vgf")


def test_through_to_edge_and_to_backend_twice():
    program = export(SIMPLE, (X,))
    edge = to_edge(program, compile_config=EdgeCompileConfig(_check_ir_validity=False))
    before = str(edge.exported_program())
    buffers = []
    for _ in range(2):
        lowered = edge.to_backend(TARGETS["vgf"].partitioner())
        _check(lowered, SIMPLE, X, cpu=(CAST,))
        buffers.append(lowered.to_executorch().buffer)
    assert buffers[0] == buffers[1]
    assert str(edge.exported_program()) == before


def test_other_programs_are_what_they_were():
    def forward(m, x, ids):
        # A stock int32 program, and int64 that no delegate is beside.
        i = x.argmax(-1).to(torch.int32)
        return torch.relu(x) * 2, i % 7 + i, ids + 1, ids.to(torch.int32)

    def buffer():
        return lower(Model(forward), (X, IDS), TARGETS["vgf"]).to_executorch().buffer

    with arm_ext.patched(disable=[FIX]):
        stock = buffer()
    assert buffer() == stock


IDS = torch.tensor([1, 2, 3])
