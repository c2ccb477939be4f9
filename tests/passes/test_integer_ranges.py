# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The ranges hold every value that a program computes, and no more than they must."""

import itertools
import operator

import pytest
import torch
from arm_ext.passes import integer_range as arithmetic
from arm_ext.passes.integer_range import DTYPE_RANGES, IntegerRange
from arm_ext.passes.integer_ranges import integer_ranges, intermediates, why_not
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.dialects._ops import ops as exir_ops
from hypothesis import given, settings, strategies as st
from integer_programs import execute, in_int32, random_program, Trap
from torch.export import Dim, export
from torch.fx import Graph, GraphModule

aten = torch.ops.aten
edge = exir_ops.edge.aten
INT64 = DTYPE_RANGES[torch.int64]
INT32_MAX = torch.iinfo(torch.int32).max


# Arithmetic on ranges ----------------------------------------------------------------

SMALL = [IntegerRange(lo, hi) for lo in range(-5, 6) for hi in range(lo, 6)]
SHIFTS = [r for r in SMALL if r.lo >= 0]


def all_of(values):
    return range(values.lo, values.hi + 1)


def c_divide(x, y):
    return int(x / y)  # exact for numbers as small as these


def c_remainder(x, y):
    return x - c_divide(x, y) * y


@pytest.mark.parametrize(
    "of_ranges, of_values, others, is_exact",
    [
        (operator.add, operator.add, SMALL, True),
        (operator.sub, operator.sub, SMALL, True),
        (operator.mul, operator.mul, SMALL, True),
        (operator.lshift, operator.lshift, SHIFTS, True),
        (operator.rshift, operator.rshift, SHIFTS, True),
        (arithmetic.minimum, min, SMALL, True),
        (arithmetic.maximum, max, SMALL, True),
        (arithmetic.floor_divide, operator.floordiv, SMALL, True),
        (arithmetic.trunc_divide, c_divide, SMALL, True),
        (arithmetic.floor_remainder, operator.mod, SMALL, False),
        (arithmetic.trunc_remainder, c_remainder, SMALL, False),
        (operator.and_, operator.and_, SMALL, False),
        (operator.or_, operator.or_, SMALL, False),
        (operator.xor, operator.xor, SMALL, False),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_range_of_two_operands(of_ranges, of_values, others, is_exact):
    for x, y in itertools.product(SMALL, others):
        values = []
        for a, b in itertools.product(all_of(x), all_of(y)):
            try:
                values.append(of_values(a, b))
            except ZeroDivisionError:
                pass
        found = of_ranges(x, y)
        if not values:
            assert found is None
            continue
        closest = IntegerRange(min(values), max(values))
        assert found == closest if is_exact else closest.within(found), (x, y)


@pytest.mark.parametrize(
    "of_range, of_value",
    [
        (operator.neg, operator.neg),
        (operator.invert, operator.invert),
        (abs, abs),
        (lambda x: arithmetic.power(x, 0), lambda x: 1),
        (lambda x: arithmetic.power(x, 2), lambda x: x**2),
        (lambda x: arithmetic.power(x, 3), lambda x: x**3),
    ],
)
def test_a_range_of_one_operand_is_exact(of_range, of_value):
    for x in SMALL:
        values = [of_value(value) for value in all_of(x)]
        assert of_range(x) == IntegerRange(min(values), max(values))


def test_a_range_holds_something():
    with pytest.raises(ValueError, match=r"no integer lies in \[1, 0\]"):
        IntegerRange(1, 0)


def test_what_fits():
    assert IntegerRange(-(2**31), 2**31 - 1).fits(torch.int32)
    assert not IntegerRange(0, 2**31).fits(torch.int32)
    assert not IntegerRange(-(2**31) - 1, 0).fits(torch.int32)
    assert IntegerRange(0, 2**64 - 1).fits(torch.uint64)
    assert not IntegerRange(0, 2).fits(torch.bool)


# One op ------------------------------------------------------------------------------


class R:
    """An operand with values from ``lo`` to ``hi``; of any value where None."""

    def __init__(self, lo=None, hi=None, dtype=torch.int64, shape=(2, 3)):
        self.ends = None if lo is None else torch.tensor([lo, lo if hi is None else hi])
        self.example = torch.ones(shape, dtype=dtype)  # divides, and is a place

    def __repr__(self):  # in the names of tests, which all processes agree on
        return f"R({[] if self.ends is None else self.ends.tolist()})"


def one_op(target, *args, output=None, **kwargs):
    """Return the node of a call, and the ranges of its graph."""
    graph, ends = Graph(), {}

    def operand(arg):
        if isinstance(arg, list):
            return [operand(each) for each in arg]
        if not isinstance(arg, R):
            return arg
        node = graph.placeholder(f"x{len(ends)}")
        node.meta["val"], ends[node] = arg.example, arg.ends
        return node

    node = graph.call_function(target, tuple(map(operand, args)), kwargs)
    examples = torch.fx.node.map_arg(node.args, lambda n: n.meta["val"])
    node.meta["val"] = target(*examples, **kwargs)
    if output is not None:
        source, node = node, graph.call_function(operator.getitem, (node, output))
        node.meta["val"] = source.meta["val"][output]
    graph.output(node)
    return node, integer_ranges(GraphModule(torch.nn.Module(), graph), ends.get)


X, IDX = R(-3, 5), R(0, 1)
MASK = R(0, 1, torch.bool)
FLOAT = R(dtype=torch.float32)
BIG = 2**40
EXPECTED = [
    # Values that are moved.
    (aten.view.default, (X, [-1]), (-3, 5)),
    (edge.view_copy.default, (X, [-1]), (-3, 5)),
    (edge.permute_copy.default, (X, [1, 0]), (-3, 5)),
    (edge.select_copy.int, (X, 0, 1), (-3, 5)),
    (edge.expand_copy.default, (R(2, shape=(1, 3)), [4, 3]), (2, 2)),
    (aten.cat.default, ([X, R(7, 9)],), (-3, 9)),
    (aten.stack.default, ([R(1), R(7)],), (1, 7)),
    (edge.gather.default, (X, 1, IDX), (-3, 5)),
    (aten.index.Tensor, (X, [IDX, IDX]), (-3, 5)),
    (edge.embedding.default, (X, IDX), (-3, 5)),
    (aten.index_put.default, (X, [R(0, shape=())], R(40, shape=())), (-3, 40)),
    (aten.scatter.src, (X, 0, IDX, R(-9, 0)), (-9, 5)),
    (aten.scatter.value, (X, 0, IDX, 17), (-3, 17)),
    (aten.scatter_add.default, (X, 0, IDX, X), (-9, 15)),
    (aten.repeat_interleave.self_int, (X, 2), (-3, 5)),
    (aten.repeat_interleave.Tensor, (R(2, shape=(4,)),), (0, 3)),
    (aten.copy.default, (X, R(8)), (8, 8)),
    (aten.index_copy.default, (X, 0, R(0, shape=(2,)), R(8)), (-3, 8)),
    (aten.slice_scatter.default, (X, R(8)), (-3, 8)),
    (aten.where.self, (MASK, X, R(8)), (-3, 8)),
    (aten.where.ScalarOther, (MASK, R(1, 2), -7), (-7, 2)),
    (aten.masked_fill.Scalar, (R(1, 2), MASK, 0), (0, 2)),
    (aten.constant_pad_nd.default, (R(3, 4), [1, 1], 9), (3, 9)),
    (aten.pad.default, (R(3, 4), [1, 1], "constant"), (0, 4)),
    (aten.tril.default, (R(3, 4),), (0, 4)),
    (aten.as_strided.default, (X, [1], [1]), None),
    (aten.view.dtype, (X, torch.int32), None),
    # Constants.
    (aten.zeros_like.default, (R(),), (0, 0)),
    (aten.new_ones.default, (R(), [3]), (1, 1)),
    (aten.full_like.default, (R(), -4), (-4, -4)),
    (edge.arange.start_step, (0, 10), (0, 9)),
    (aten.arange.start_step, (3, 10, 3), (3, 9)),
    (aten.arange.start_step, (10, 3, -3), (4, 10)),
    (aten.arange.default, (5.0, {"dtype": torch.int64}), (0, 4)),
    (
        aten.arange.start,
        (2**31 - 2, 2**31, {"dtype": torch.int32}),
        (2**31 - 2, 2**31 - 1),
    ),
    (aten.arange.start, (2**31 - 2, 2**31 + 2, {"dtype": torch.int32}), None),
    # Indices and counts.
    (aten.argmax.default, (FLOAT, -1), (0, 2)),
    (aten.argmin.default, (FLOAT,), (0, 5)),
    (aten.argsort.default, (FLOAT, 0), (0, 1)),
    (aten.one_hot.default, (R(0, 6), 9), (0, 1)),
    (aten.nonzero.default, (FLOAT,), (0, 2)),
    (aten.count_nonzero.dim_IntList, (FLOAT, [0]), (0, 2)),
    (aten.count_nonzero.default, (FLOAT,), (0, 6)),
    (aten.triu_indices.default, (4, 6), (0, 5)),
    (aten.bucketize.Tensor, (FLOAT, R(dtype=torch.float32, shape=(4,))), (0, 4)),
    (aten.sum.default, (MASK,), (0, 6)),
    (aten.cumsum.default, (MASK, 1), (0, 3)),
    # Arithmetic.
    (aten.add.Tensor, (X, R(10, 20)), (7, 25)),
    (aten.add.Scalar, (X, 2), (-1, 7)),
    (aten.rsub.Scalar, (X, 2), (-3, 5)),
    (aten.mul.Tensor, (X, R(-2, 4)), (-12, 20)),
    (aten.mul.Scalar, (X, BIG), (-3 * BIG, 5 * BIG)),
    (aten.mul.Scalar, (X, 2**62), None),
    (aten.neg.default, (X,), (-5, 3)),
    (aten.neg.default, (R(-(2**63), 0),), None),
    (aten.abs.default, (X,), (0, 5)),
    (aten.abs.default, (R(-9, -2),), (2, 9)),
    (aten.sign.default, (R(0, 9),), (0, 1)),
    (aten.relu.default, (X,), (0, 5)),
    (aten.square.default, (X,), (0, 25)),
    (aten.pow.Tensor_Scalar, (X, 3), (-27, 125)),
    (aten.pow.Scalar, (2, R(0, 10)), (1, 1024)),
    (aten.pow.Tensor_Tensor, (X, R(-1, 2)), None),
    (aten.clamp.default, (R(), 0, 9), (0, 9)),
    (aten.clamp.default, (X, None, 2), (-3, 2)),
    (aten.clamp.default, (X, 0), (0, 5)),
    (aten.clamp.default, (X, 9, 7), (7, 7)),
    (aten.clamp.Tensor, (R(), R(0, 1), R(5, 8)), (0, 8)),
    (aten.maximum.default, (X, R(0, 2)), (0, 5)),
    (aten.minimum.default, (X, R(0, 2)), (-3, 2)),
    (aten.amax.default, (X, [1]), (-3, 5)),
    (aten.max.other, (X, R(0, 2)), (0, 5)),
    (aten.max.default, (X,), (-3, 5)),
    (aten.sum.dim_IntList, (X, [0]), (-6, 10)),
    (aten.sum.dim_IntList, (X, []), (-18, 30)),
    (aten.sum.default, (R(1, 2),), (6, 12)),
    (aten.sum.default, (R(1, 2, shape=(0, 3)),), (0, 0)),
    (aten.sum.default, (FLOAT,), "float"),
    (aten.cumsum.default, (X, -1), (-9, 15)),
    (aten.cumsum.default, (R(2, 3), -1), (2, 9)),
    (aten.prod.dim_int, (X, 0), (-15, 25)),
    (aten.prod.default, (R(1, 2),), (1, 64)),
    # Division.
    (aten.floor_divide.Scalar, (X, 2), (-2, 2)),
    (aten.floor_divide.default, (X, R(-2, 4)), (-5, 5)),
    (aten.div.Tensor_mode, (X, R(2), {"rounding_mode": "trunc"}), (-1, 2)),
    (aten.div.Scalar_mode, (X, 2, {"rounding_mode": "floor"}), (-2, 2)),
    (aten.floor_divide.default, (R(-(2**63), 0), R(-1)), None),
    (aten.remainder.Scalar, (R(), 7), (0, 6)),
    (aten.remainder.Scalar, (R(), -7), (-6, 0)),
    (aten.remainder.Scalar, (R(15, 18), 7), (1, 4)),
    (aten.remainder.Tensor, (R(2, 5), R(6, 9)), (2, 5)),
    (aten.remainder.Tensor, (R(), R(-4, 9)), (-3, 8)),
    (aten.fmod.Scalar, (X, 4), (-3, 3)),
    (aten.fmod.Scalar, (R(), -4), (-3, 3)),
    (aten.fmod.Tensor, (X, R(6, 9)), (-3, 5)),
    # Bits.
    (aten.bitwise_and.Scalar, (R(), 15), (0, 15)),
    (aten.bitwise_or.Tensor, (R(4, 5), R(8, 9)), (8, 15)),
    (aten.bitwise_xor.Scalar, (R(0, 5), 2), (0, 7)),
    (aten.bitwise_not.default, (X,), (-6, 2)),
    (aten.bitwise_not.default, (MASK,), (0, 1)),
    (aten.bitwise_left_shift.Tensor_Scalar, (X, 3), (-24, 40)),
    (aten.__lshift__.Scalar, (X, 3), (-24, 40)),
    (aten.bitwise_right_shift.Tensor, (X, R(0, 1)), (-3, 5)),
    (aten.bitwise_right_shift.Tensor, (X, R(-1, 1)), None),
    (aten.bitwise_left_shift.Tensor_Scalar, (X, 64), None),
    # Truth and casts.
    (aten.lt.Scalar, (FLOAT, 0), (0, 1)),
    (aten.logical_not.default, (X,), (0, 1)),
    (aten._to_copy.default, (X, {"dtype": torch.int8}), (-3, 5)),
    (aten._to_copy.default, (R(0, 200), {"dtype": torch.int8}), (-128, 127)),
    (aten._to_copy.default, (R(2, 200), {"dtype": torch.bool}), (1, 1)),
    (aten._to_copy.default, (FLOAT, {"dtype": torch.int32}), None),
    (aten._to_copy.default, (R(dtype=torch.int8), {"dtype": torch.int64}), (-128, 127)),
    (
        exir_ops.edge.quantized_decomposed.quantize_per_tensor.default,
        (FLOAT, 0.1, 0, -127, 127, torch.int8),
        (-127, 127),
    ),
    # The dtype wraps, or is that of one operand only.
    (aten.add.Tensor, (R(100, 127, torch.int8), R(1, 1, torch.int8)), None),
    (aten.add.Tensor, (R(0, 9, torch.int8), R(300, 300, shape=())), None),
    (aten.mul.Tensor, (R(0, 9, torch.int8), R(0, 9, torch.int32)), (0, 81)),
    # Not known.
    (aten.hash_tensor.default, (X,), None),
    (aten.empty_like.default, (X,), None),
]


@pytest.mark.parametrize(
    "target, args, expected", EXPECTED, ids=[str(case[0]) for case in EXPECTED]
)
def test_the_range_of_an_op_is_as_narrow_as_this(target, args, expected):
    args, kwargs = (args[:-1], args[-1]) if isinstance(args[-1], dict) else (args, {})
    node, ranges = one_op(target, *args, **kwargs)
    if expected == "float":
        assert node not in ranges
    elif expected is None:
        assert ranges[node] == DTYPE_RANGES[node.meta["val"].dtype]
    else:
        assert ranges[node] == IntegerRange(*expected)


@pytest.mark.parametrize(
    "target, args, outputs",
    [
        (aten.topk.default, (FLOAT, 1), [None, (0, 2)]),
        (aten.topk.default, (X, 1), [(-3, 5), (0, 2)]),
        (edge.sort.default, (X, 0), [(-3, 5), (0, 1)]),
        (aten.kthvalue.default, (X, 1), [(-3, 5), (0, 2)]),
        (aten.max.dim, (X, 1), [(-3, 5), (0, 2)]),
        (
            edge.max_pool2d_with_indices.default,
            (R(dtype=torch.float32, shape=(1, 4, 6)), [2, 2]),
            [None, (0, 23)],
        ),
        (aten.where.default, (MASK,), [None, None]),
        (aten.cummin.default, (X, 1), [(-3, 5), (0, 2)]),
        (aten.split.Tensor, (X, 1), [(-3, 5), (-3, 5)]),
        (edge.unbind_copy.int, (X,), [(-3, 5), (-3, 5)]),
    ],
    ids=str,
)
def test_the_range_of_each_of_several_outputs(target, args, outputs):
    for position, expected in enumerate(outputs):
        node, ranges = one_op(target, *args, output=position)
        known = None if ranges.get(node) == INT64 else ranges.get(node)
        assert known == (expected and IntegerRange(*expected))


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0)])
@pytest.mark.parametrize(
    "target", [aten.abs.default, aten.sum.default, aten.any.default]
)
def test_tensors_of_no_or_one_element(target, shape):
    node, ranges = one_op(target, R(-3, 5, shape=shape))
    count = torch.Size(shape).numel()
    expected = {
        aten.abs.default: (0, 5 * min(count, 1)),
        aten.sum.default: (-3 * count, 5 * count),
        aten.any.default: (0, 1),
    }
    assert ranges[node] == IntegerRange(*expected[target])


# On the way --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target, args, expected",
    [
        (aten.add.Tensor, (X, R(1, 2)), [(-3, 5), (1, 2)]),
        (
            aten.add.Tensor,
            (X, R(1, 2), {"alpha": 3}),
            [(-3, 5), (1, 2), (3, 3), (3, 6)],
        ),
        (aten.mul.Scalar, (X, BIG), [(-3, 5), (BIG, BIG)]),
        # x, y, trunc(x / y), floor(x / y), floor(x / y) * y
        (
            aten.remainder.Scalar,
            (R(-20, 20), 7),
            [(-20, 20), (7, 7), (-2, 2), (-3, 2), (-21, 14)],
        ),
        (
            aten.remainder.Scalar,
            (R(-(2**31), 0), 7),
            [
                *((-(2**31), 0), (7, 7), (-306783378, 0), (-306783379, 0)),
                (-(2**31) - 5, 0),
            ],
        ),
        (aten.sum.default, (R(1, 2),), [(1, 2), (0, 12)]),
        (aten.cumsum.default, (R(-2, -1), 1), [(-2, -1), (-6, 0)]),
        (aten.pow.Tensor_Scalar, (X, 4), [(-3, 5), (4, 4), (0, 25), (-27, 125)]),
        (aten.clamp.default, (X, 0, BIG), [(-3, 5), (0, 0), (BIG, BIG)]),
        (aten.eq.Tensor, (X, R(BIG)), [(-3, 5), (BIG, BIG)]),
        (edge.gather.default, (FLOAT, 1, IDX), [(0, 1)]),
        (aten._to_copy.default, (X, {"dtype": torch.float32}), [(-3, 5)]),
        (aten.full_like.default, (R(), 4), [(4, 4)]),
        (aten.argmax.default, (FLOAT,), []),
        (aten.eq.Scalar, (X, 2.0), [(-3, 5), (2, 2)]),
        # None of these may be computed in int32.
        (aten.eq.Scalar, (R(0, 2**25), 2.0), None),
        (aten.gt.Scalar, (X, 2.0**24 + 1), None),
        (aten.floor_divide.default, (X, R(-1, 1)), None),
        (aten.remainder.Tensor, (X, R(0, 5)), None),
        (aten.bitwise_left_shift.Tensor_Scalar, (R(0), 40), None),
        (aten.bitwise_right_shift.Tensor_Scalar, (R(), 40), None),
        (aten.pow.Tensor_Tensor, (X, R(1, 2)), None),
        (aten.hash_tensor.default, (X,), None),
    ],
    ids=str,
)
def test_what_is_computed_on_the_way(target, args, expected):
    args, kwargs = (args[:-1], args[-1]) if isinstance(args[-1], dict) else (args, {})
    node, ranges = one_op(target, *args, **kwargs)
    found = intermediates(node, ranges)
    assert found == (expected and tuple(IntegerRange(*ends) for ends in expected)) or (
        expected == [] and found == ()
    )


def test_the_product_in_a_remainder():
    for x, y in itertools.product(SMALL[::5], (r for r in SMALL if 0 not in r)):
        node, ranges = one_op(aten.remainder.Tensor, R(x.lo, x.hi), R(y.lo, y.hi))
        product = intermediates(node, ranges)[-1]
        for a, b in itertools.product((x.lo, x.hi, 0), (y.lo, y.hi)):
            assert a not in x or a // b * b in product


@pytest.mark.parametrize(
    "target, args, reason",
    [
        (aten.mul.Scalar, (R(0, 8), 2**30), "x0 * 1073741824 reaches 8589934592"),
        (aten.mul.Tensor, (R(0, 8), R(2**30)), "x0 * 1073741824 reaches 8589934592"),
        (
            aten.mul.Scalar,
            (X, BIG),
            "in x0 * 1099511627776, the constant 1099511627776 reaches 1099511627776",
        ),
        (aten.add.Scalar, (R(), 1), "x0 may hold any value of its dtype"),
        (aten.eq.Tensor, (X, R(0, BIG)), "x1 reaches 1099511627776"),
        (aten.remainder.Tensor, (X, IDX), "in x0 % x1, the divisor may be zero"),
        (
            aten.remainder.Scalar,
            (R(-(2**31), 0), 7),
            "in x0 % 7, floor(self / other) * other reaches -2147483653",
        ),
        (
            aten.bitwise_left_shift.Tensor_Scalar,
            (IDX, 40),
            "in x0 << 40, the shift may be by 40 bits, which int32 does not have",
        ),
        (aten.abs.default, (R(-(2**31)),), "abs(-2147483648) reaches 2147483648"),
        (
            aten.sum.dim_IntList,
            (R(0, 2**30), [1]),
            "in sum(x0, [1]), a partial sum of self reaches 3221225472",
        ),
        (
            aten.hash_tensor.default,
            (X,),
            "nothing is known of the values of hash_tensor(x0)",
        ),
        (
            aten._to_copy.default,
            (FLOAT, {"dtype": torch.int64}),
            "nothing is known of the values of _to_copy(x0)",
        ),
        (aten.add.Scalar, (X, 1), None),
        (aten._to_copy.default, (X, {"dtype": torch.float32}), None),
    ],
    ids=str,
)
def test_the_reason_in_words(target, args, reason):
    args, kwargs = (args[:-1], args[-1]) if isinstance(args[-1], dict) else (args, {})
    node, ranges = one_op(target, *args, **kwargs)
    assert why_not(node, ranges) == reason


def test_the_reason_is_that_of_the_first_op_that_does_not_fit():
    graph = Graph()
    first = node = graph.placeholder("x")
    first.meta["val"] = torch.zeros(3, dtype=torch.int64)
    for scalar in (2**20, 2**20, 1):
        node = graph.call_function(aten.mul.Scalar, (node, scalar))
        node.meta["val"] = first.meta["val"]
    graph.output(node)
    module = GraphModule(torch.nn.Module(), graph)
    ranges = integer_ranges(module, lambda node: torch.tensor([0, 3]))
    assert why_not(node, ranges) == "mul_scalar * 1048576 reaches 3298534883328"


# Random programs ---------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.randoms(use_true_random=True), st.integers(1, 14), st.booleans())
def test_every_value_lies_in_its_range(random, length, in_place):
    program, module = random_program(random, length, in_place)
    ranges = integer_ranges(module, program.value_of)
    for _ in range(3):
        for node, values in execute(program, random).items():
            for value in (v for v in values if node in ranges and v.numel()):
                observed = IntegerRange(int(value.min()), int(value.max()))
                assert observed.within(ranges[node]), (node.target, node.args)


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=True), st.integers(1, 14))
def test_int32_computes_the_same_where_all_fits(random, length):
    program, module = random_program(random, length)
    ranges = integer_ranges(module, program.value_of)
    values = {node: copies[0] for node, copies in execute(program, random).items()}
    for node, wanted in values.items():
        if node.target is operator.getitem or node.op != "call_function":
            continue
        if node not in ranges or why_not(node, ranges) is not None:
            continue
        try:
            actual = in_int32(node, values)
        except (KeyError, RuntimeError, Trap):
            continue  # it reads an op of several outputs, or ATen takes int64 only
        assert torch.equal(actual.to(wanted.dtype), wanted), (node.target, node.args)


# Exported programs -------------------------------------------------------------------


class Model(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.register_buffer("table", torch.tensor([3, 8, 5]))
        self.register_buffer("state", torch.tensor([1, 1, 1]))

    def forward(self, *inputs):
        return self.function(self, *inputs)


def ranges_of_outputs(program):
    """The ranges of what a program computes, its outputs in order."""
    signature = program.graph_signature
    mutable = signature.buffers_to_mutate.values()
    names = {
        node: target
        for node, target in (
            *signature.inputs_to_buffers.items(),
            *signature.inputs_to_lifted_tensor_constants.items(),
        )
        if target not in mutable
    }
    values = {**program.state_dict, **program.constants}
    ranges = integer_ranges(
        program.graph_module, lambda node: values.get(names.get(node.name))
    )
    nodes = program.graph.output_node().args[0]
    outputs = [spec.arg.name for spec in signature.output_specs]
    user = [n for n, name in zip(nodes, outputs) if name in signature.user_outputs]
    return [ranges.get(node) for node in user]


def in_both_dialects(function, *inputs, dynamic_shapes=None):
    if dynamic_shapes is not None:
        dynamic_shapes = (tuple(dynamic_shapes),)
    program = export(Model(function), inputs, dynamic_shapes=dynamic_shapes)
    config = EdgeCompileConfig(_check_ir_validity=False)
    lowered = to_edge(program, compile_config=config).exported_program()
    return ranges_of_outputs(program), ranges_of_outputs(lowered)


def test_an_exported_program_in_both_dialects():
    def function(self, x, ids):
        index = x.argmax(-1)
        return (
            index % 7,
            (x > 0).long().cumsum(1) - 1,
            self.table[ids] + index[:3],
            self.state * 2,
            torch.zeros(3, dtype=torch.long).masked_fill(x[0, :3] > 0, 9),
            torch.nn.functional.one_hot(index, 6),
            x * 2,
        )

    inputs = torch.randn(4, 6), torch.tensor([0, 1, 2])
    for found in in_both_dialects(function, *inputs):
        assert found == [
            IntegerRange(0, 5),
            IntegerRange(-1, 5),
            IntegerRange(3, 13),
            IntegerRange(2, 2),
            IntegerRange(0, 9),
            IntegerRange(0, 1),
            None,
        ]


def test_what_is_written_has_the_range_of_its_dtype():
    def function(self, x):
        zeros = torch.zeros(3, dtype=torch.long)
        row = zeros[:2]
        row.add_(x)
        self.state.add_(1)
        ones = torch.ones(3, dtype=torch.long)
        with torch.no_grad():
            ones.add_(x)
        # A constant, of which export makes one with ``detach_``.
        return zeros * 1, self.state * 1, ones * 1, torch.tensor([1, 1]) * 1

    program = export(Model(function), (torch.tensor(2),))
    assert any("add_" in str(node.target) for node in program.graph.nodes)
    assert ranges_of_outputs(program) == [INT64] * 3 + [IntegerRange(1, 1)]
    functional = program.run_decompositions({})
    assert ranges_of_outputs(functional)[3] == IntegerRange(1, 1)


@pytest.mark.parametrize(
    "dim, most",
    [(Dim("b", max=100), 100), (Dim("b"), None), (Dim("b", min=5, max=9), 9)],
)
def test_sizes_that_are_symbols(dim, most):
    def function(self, x):
        size = x.shape[0]
        return (
            torch.arange(size) * size,
            x.argmax(0),
            (x > 0).sum(0),
            torch.full((2,), 2 * size),
            (x > 0).long().cumsum(0).clamp(max=5),
        )

    found = in_both_dialects(function, torch.randn(6, 2), dynamic_shapes=[{0: dim}])
    least = dim.min if dim.min > 2 else 0
    for ranges in found:
        assert ranges[4] == IntegerRange(0, 5)
        if most is not None:
            assert ranges == [
                IntegerRange(0, (most - 1) * most),
                IntegerRange(0, most - 1),
                IntegerRange(0, most),
                IntegerRange(2 * least, 2 * most),
                IntegerRange(0, 5),
            ]
        else:
            assert all(not r.fits(torch.int32) for r in ranges[:4])


def test_a_dimension_may_be_smaller_than_export_assumes():
    """Export takes it for at least 2, and the program runs with 1."""

    def function(self, x):
        return torch.arange(7) // (x.shape[0] - 1 + x.shape[1])

    found = in_both_dialects(
        function, torch.randn(6, 1), dynamic_shapes=[{0: Dim("b", max=8)}]
    )
    assert all(ranges == [IntegerRange(0, 6)] for ranges in found)


def test_an_integer_input_may_have_any_value():
    """Export takes it for not negative, and the program runs with -7."""

    def function(self, x, n):
        return torch.arange(7) + 2 * n, x * n

    program = export(
        Model(function),
        (torch.randn(3), 5),
        dynamic_shapes=((None, Dim.DYNAMIC),),
    )
    assert ranges_of_outputs(program)[0] == INT64


def test_branches_and_loops_may_give_any_value():
    def function(self, x):
        count = x.argmax()
        branch = torch.cond(count > 1, lambda i: i + 1, lambda i: i * 2, (count,))
        return count, branch

    for found in in_both_dialects(function, torch.randn(4)):
        assert found == [IntegerRange(0, 3), INT64]


def test_a_long_chain_takes_no_recursion():
    graph, value = Graph(), torch.zeros(3, dtype=torch.int64)
    node = graph.placeholder("x")
    node.meta["val"] = value
    for target, *args in [(aten.add.Scalar, 2**20)] * 5000 + [
        (aten.view.default, [3]),
        (aten.add_.Scalar, 1),
    ]:
        node = graph.call_function(target, (node, *args))
        node.meta["val"] = value
    graph.output(node)
    module = GraphModule(torch.nn.Module(), graph)

    known = integer_ranges(module, lambda node: torch.tensor([0, 0]))
    _, *calls, _ = graph.nodes
    *_, last, written, view, in_place = calls
    assert [known[n] for n in (written, view, in_place)] == [INT64] * 3
    assert known[last] == IntegerRange.point(4999 * 2**20)
    assert why_not(last, known) == "add_scalar_2046 + 1048576 reaches 2147483648"

    unknown = integer_ranges(module, lambda node: None)
    for node in reversed(calls):
        assert why_not(node, unknown) == "x may hold any value of its dtype"
