# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What each op does to ranges of integers, one rule an op.

A rule gets a ``Call`` and returns the range of the op's result before it wraps into
its dtype, or None where nothing is known. On the way it says what it reads
(``operand``, ``reads``) and what the op's lowering for Arm computes
(``computes``). An overload, an edge op and a copying variant share the rule of their
ATen op, under its name: ``aten.view_copy.default`` has the rule of ``view``.

"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast, Union

import sympy
import torch
from torch._dynamo.source import TensorPropertySource
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.value_ranges import bound_sympy, ValueRanges

from .index_sources import schema_of
from .integer_range import (
    convert,
    DTYPE_RANGES,
    floor_divide,
    floor_remainder,
    IntegerRange,
    join,
    maximum,
    minimum,
    power,
    trunc_divide,
    trunc_remainder,
)

# One range, one for each output, or None.
Result = Union[IntegerRange, tuple[IntegerRange, ...], None]

_INT64 = DTYPE_RANGES[torch.int64]
_ZERO = IntegerRange.point(0)
_ONE = IntegerRange.point(1)
_TRUTH = IntegerRange(0, 1)
_INT32_BITS = IntegerRange(0, 31)
_EXACT_IN_FLOAT32 = IntegerRange(-(2**24), 2**24)
# More factors than this, of which one is not in -1..1, overflow any dtype.
_MOST_FACTORS = 64


@dataclass(frozen=True)
class Step:
    """Integers that an op reads or computes on the way to its result.

    Attributes:
        source (Node | str): The operand, or words for what is computed.
        values (IntegerRange): Its range.

    """

    source: Node | str
    values: IntegerRange


class Call:
    """One call of an op, and what is known about its operands.

    Args:
        node (Node): Calls an op that has a rule.
        ranges (Mapping[Node, IntegerRange]): Of all inputs that hold integers.

    """

    def __init__(self, node: Node, ranges: Mapping[Node, IntegerRange]) -> None:
        self.node = node
        self.arguments = _bind(node)
        self.dtype = first_tensor(node.meta["val"]).dtype
        self.steps: list[Step] = []
        self.obstacle: str | None = None
        self._ranges = ranges

    def has(self, name: str) -> bool:
        """Whether the overload has this argument, and it is given."""
        return self.arguments.get(name) is not None

    def operand(self, name: str) -> IntegerRange:
        """Return the values of an argument (of a list: of all), cast to the result."""
        return join(self._operand(value) for value in _flat(self.arguments[name]))

    def operands(self) -> tuple[IntegerRange, IntegerRange]:
        return self.operand("self"), self.operand("other")

    def number(self, name: str) -> IntegerRange:
        """Return the values of an argument that is no tensor, as they are."""
        self._note(self.arguments[name])
        return self._values(self.arguments[name]) or _INT64

    def reads(self, *names: str) -> None:
        """Note arguments that are read, but whose values the result does not have."""
        for name in names:
            for value in _flat(self.arguments.get(name)):
                self._note(value)

    def reads_tensors(self) -> None:
        """Note all tensors, for an op whose result is no integer."""
        for value in self.node.all_input_nodes:
            if isinstance(value.meta.get("val"), torch.Tensor):
                self._note(value)

    def computes(self, words: str, values: IntegerRange | None) -> None:
        """Note a value on the way, in words with ``self`` and ``other`` in them."""
        if values is not None:
            self.steps.append(Step(words, values))

    def cannot_lower(self, why: str) -> None:
        """Note that the op's int32 form may be another value, or none."""
        self.obstacle = self.obstacle or why

    def size(self, name: str, dim: int) -> IntegerRange:
        shape = self.arguments[name].meta["val"].shape
        return size_range(shape[dim]) if shape else _ONE

    def elements(self, name: str, dims: int | list[int] | None) -> IntegerRange:
        """Return how many elements the dimensions have together; None means all."""
        if dims is None or dims == []:
            dims = list(range(self.arguments[name].meta["val"].dim()))
        count = _ONE
        for dim in _flat(dims):
            count *= self.size(name, dim)
        return count

    def _operand(self, value: Any) -> IntegerRange:
        values = self._values(value)
        self._note(value)
        if self.dtype not in DTYPE_RANGES:  # the index beside it is what counts
            return _INT64
        return (
            DTYPE_RANGES[self.dtype] if values is None else convert(values, self.dtype)
        )

    def _note(self, value: Any) -> None:
        values = self._values(value)
        if values is not None:
            source = value if isinstance(value, Node) else f"the constant {value}"
            self.steps.append(Step(source, values))

    def _values(self, value: Any) -> IntegerRange | None:
        if isinstance(value, Node):
            return self._ranges.get(value)
        if isinstance(value, float):
            if not math.isfinite(value):
                return None
            return IntegerRange(math.floor(value), math.ceil(value))
        return IntegerRange.point(int(value))


def size_range(size: int | torch.SymInt | torch.SymBool) -> IntegerRange:
    """Return the values of a size, or of what is computed from sizes."""
    if isinstance(size, torch.SymBool):
        return _TRUTH
    if not isinstance(size, torch.SymInt):
        return IntegerRange.point(int(size))
    expression, environment = size.node.expr, size.node.shape_env
    symbols = {s: _symbol_range(s, environment) for s in expression.free_symbols}
    try:
        bounds = bound_sympy(expression, symbols)
    except RecursionError:
        return _INT64
    lo, hi = (
        int(end) if isinstance(end, (int, sympy.Integer)) else limit
        for end, limit in ((bounds.lower, _INT64.lo), (bounds.upper, _INT64.hi))
    )
    return IntegerRange(lo, hi) if _INT64.lo <= lo <= hi <= _INT64.hi else _INT64


def _symbol_range(symbol: sympy.Symbol, environment: ShapeEnv) -> ValueRanges:
    """Return the values that a symbol has in programs that run without an error.

    Export takes a dimension for at least 2, and an integer input for not negative. It
    drops that where the program does not need it; its shape environment does not.

    """
    sources = environment.var_to_sources.get(symbol, ())
    is_input = sources and not any(isinstance(s, TensorPropertySource) for s in sources)
    bounds = environment.var_to_range.get(symbol)
    if bounds is None or is_input:
        return ValueRanges.unknown_int()
    return bounds if bounds.lower != 2 else ValueRanges(0, bounds.upper)


Rule = Callable[[Call], Result]
_RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of the ATen ops of these names."""

    def register(function: Rule) -> Rule:
        for name in names:
            assert name not in _RULES, name
            _RULES[name] = function
        return function

    return register


def op_name(node: Node) -> str | None:
    """Return the name of an op of ATen or of the edge dialect, else None.

    Overload, ``_copy`` and the mark of an op in place are left out of it.

    """
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None:
        return None
    namespace, name = schema.name.split("::")
    if name == "view" and schema.overload_name == "dtype":
        return None  # the same bits are other values
    if namespace not in ("aten", "dim_order_ops", "quantized_decomposed"):
        return None
    if name.endswith("_") and not name.endswith("__"):
        name = name[:-1]
    return name if name == "index_copy" else name.removesuffix("_copy")


def source_of(node: Node) -> Node:
    """Return the op of several outputs of which ``node`` is one, or ``node``."""
    return node.all_input_nodes[0] if node.target is operator.getitem else node


def rule_of(node: Node) -> Rule | None:
    """Return the rule of the op that computes ``node``, which may be a getitem."""
    name = op_name(source_of(node)) if node.op == "call_function" else None
    return None if name is None else _RULES.get(name)


def output_of(result: Result, node: Node) -> IntegerRange | None:
    """Return what a rule's result says about ``node``, one of the op's outputs."""
    if not isinstance(result, tuple):
        return result
    if node.target is not operator.getitem:
        return None
    return result[cast(int, node.args[1])]


def _bind(node: Node) -> dict[str, Any]:
    bound = {a.name: a.default_value for a in schema_of(node).arguments}
    bound.update(zip(bound, node.args))
    bound.update(node.kwargs)
    return bound


def _flat(value: Any) -> list[Any]:
    values = value if isinstance(value, (list, tuple)) else [value]
    return [value for value in values if value is not None]


def first_tensor(value: Any) -> torch.Tensor:
    return value[0] if isinstance(value, (list, tuple)) else value


# Values that are moved ---------------------------------------------------------------


@rule(
    *("alias", "broadcast_to", "chunk", "clone", "_clone_dim_order", "contiguous"),
    *("detach", "diagonal", "embedding", "expand", "expand_as", "flatten", "flip"),
    *("gather", "index", "_unsafe_index", "index_select", "lift_fresh", "lift"),
    *("masked_select", "meshgrid", "movedim", "narrow", "permute", "repeat", "reshape"),
    *(
        "reshape_as",
        "roll",
        "select",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "t",
        "take",
        "take_along_dim",
    ),
    *("tensor_split", "tile", "transpose", "unbind", "unflatten", "unfold"),
    *("_unsafe_view", "unsafe_split", "unsqueeze", "view", "view_as", "swapaxes"),
    *("cat", "concat", "concatenate", "stack", "_to", "_to_dim_order", "to", "type_as"),
    *("amax", "amin", "ceil", "floor", "trunc"),
)
def _moved(call: Call) -> Result:
    """Each value is one of the operand's, cast."""
    call.reads("index", "indices", "mask")
    source = next(n for n in ("self", "tensors", "weight") if call.has(n))
    return call.operand(source)


@rule("repeat_interleave")
def _repeat_interleave(call: Call) -> Result:
    if not call.has("self"):  # the places that ``repeats`` repeats
        return _below(call.size("repeats", 0))
    return call.operand("self")


@rule("copy")
def _copy(call: Call) -> Result:
    return call.operand("src")


@rule("fill")
def _fill(call: Call) -> Result:
    return call.operand("value")


@rule(
    *("diagonal_scatter", "index_copy", "index_fill", "index_put", "masked_fill"),
    *("masked_scatter", "scatter", "select_scatter", "slice_scatter"),
    *("_unsafe_index_put",),
)
def _written(call: Call) -> Result:
    """Each value is one of the operand's or one of those written."""
    if call.arguments.get("accumulate") or call.has("reduce"):
        return None
    call.reads("index", "indices", "mask")
    names = ("self", "src", "source", "value", "values")
    return join(call.operand(name) for name in names if call.has(name))


@rule("scatter_add")
def _scatter_add(call: Call) -> Result:
    """To each value, as many as its row of the index has places may be added."""
    call.reads("index")
    values, added = call.operand("self"), call.operand("src")
    if call.elements("index", None).hi == 0:
        return values  # its rank may be any
    places = IntegerRange(0, call.size("index", call.arguments["dim"]).hi)
    return values + places * added


@rule("where")
def _where(call: Call) -> Result:
    call.reads("condition")
    if "self" not in call.arguments:
        return None  # the places where it holds
    return join(call.operands())


@rule("constant_pad_nd", "pad")
def _pad(call: Call) -> Result:
    values = [call.operand("self")]
    if call.arguments.get("mode", "constant") == "constant":
        values.append(call.operand("value") if call.has("value") else _ZERO)
    return join(values)


@rule("tril", "triu", "diag_embed")
def _partly_zero(call: Call) -> Result:
    return join((call.operand("self"), _ZERO))


# Constants ---------------------------------------------------------------------------


@rule("zeros", "zeros_like", "new_zeros")
def _zeros(call: Call) -> Result:
    return _ZERO


@rule("ones", "ones_like", "new_ones")
def _ones(call: Call) -> Result:
    return _ONE


@rule("full", "full_like", "new_full")
def _full(call: Call) -> Result:
    return call.operand("fill_value")


@rule("scalar_tensor")
def _scalar_tensor(call: Call) -> Result:
    return call.operand("s")


@rule("eye")
def _eye(call: Call) -> Result:
    return _TRUTH


@rule("arange")
def _arange(call: Call) -> Result:
    given = [call.arguments.get(name) for name in ("start", "end", "step")]
    if any(isinstance(value, float) and not value.is_integer() for value in given):
        return None
    start = call.number("start") if call.has("start") else _ZERO
    step = call.number("step") if call.has("step") else _ONE
    end = call.number("end")
    if step.hi < 0:
        return -_rising(-start, -end, -step)
    return _rising(start, end, step) if step.lo > 0 else None


def _rising(start: IntegerRange, end: IntegerRange, step: IntegerRange) -> IntegerRange:
    if start.is_point and step.is_point:
        steps = max((end.hi - 1 - start.lo) // step.lo, 0)
        return IntegerRange(start.lo, start.lo + steps * step.lo)
    return IntegerRange(start.lo, max(end.hi - 1, start.lo))


# Indices and counts ------------------------------------------------------------------


def _below(size: IntegerRange) -> IntegerRange:
    return IntegerRange(0, max(size.hi - 1, 0))


@rule("argmax", "argmin")
def _arg(call: Call) -> Result:
    call.reads("self")
    return _below(call.elements("self", call.arguments["dim"]))


@rule("argsort")
def _argsort(call: Call) -> Result:
    call.reads("self")
    return _below(call.size("self", call.arguments["dim"]))


@rule("topk", "sort", "kthvalue", "mode", "cummax", "cummin")
def _values_and_indices(call: Call) -> Result:
    return call.operand("self"), _below(call.size("self", call.arguments["dim"]))


@rule("max", "min", "median", "nanmedian")
def _max(call: Call) -> Result:
    if call.has("other"):
        both = maximum if op_name(source_of(call.node)) == "max" else minimum
        return both(*call.operands())
    return (
        _values_and_indices(call) if "dim" in call.arguments else call.operand("self")
    )


@rule("max_pool2d_with_indices")
def _max_pool2d(call: Call) -> Result:
    return call.operand("self"), _below(call.elements("self", [-2, -1]))


@rule("tril_indices", "triu_indices")
def _triangle_indices(call: Call) -> Result:
    return IntegerRange(0, max(call.arguments["row"], call.arguments["col"], 1) - 1)


@rule("count_nonzero")
def _count_nonzero(call: Call) -> Result:
    call.reads("self")
    return IntegerRange(0, call.elements("self", call.arguments["dim"]).hi)


@rule("nonzero")
def _nonzero(call: Call) -> Result:
    call.reads("self")
    rank = call.arguments["self"].meta["val"].dim()
    return (
        join(_below(call.size("self", dim)) for dim in range(rank)) if rank else _ZERO
    )


@rule("bucketize")
def _bucketize(call: Call) -> Result:
    call.reads("self", "boundaries")
    return IntegerRange(0, call.size("boundaries", -1).hi)


@rule("searchsorted")
def _searchsorted(call: Call) -> Result:
    call.reads("self", "sorted_sequence", "sorter")
    return IntegerRange(0, call.size("sorted_sequence", -1).hi)


@rule("one_hot")
def _one_hot(call: Call) -> Result:
    call.reads("self")
    return _TRUTH


# Truth -------------------------------------------------------------------------------


@rule(
    *("eq", "ne", "lt", "le", "gt", "ge", "not_equal", "less", "less_equal"),
    *("greater", "greater_equal", "logical_and", "logical_or", "logical_xor"),
    *("logical_not", "any", "all", "isnan", "isinf", "isfinite"),
)
def _truth(call: Call) -> Result:
    call.reads("self", "other")
    if isinstance(call.arguments.get("other"), float):
        if not all(step.values.within(_EXACT_IN_FLOAT32) for step in call.steps):
            call.cannot_lower("float32 compares what it does not hold exactly")
    return _TRUTH


# Arithmetic --------------------------------------------------------------------------


@rule("add")
def _add(call: Call) -> Result:
    x, y = call.operands()
    return x + _scaled(call, y, "other")


@rule("sub", "subtract")
def _sub(call: Call) -> Result:
    x, y = call.operands()
    return x - _scaled(call, y, "other")


@rule("rsub")
def _rsub(call: Call) -> Result:
    x, y = call.operands()
    return y - _scaled(call, x, "self")


def _scaled(call: Call, values: IntegerRange, name: str) -> IntegerRange:
    if call.arguments["alpha"] == 1:
        return values
    scaled = call.operand("alpha") * values
    call.computes(f"alpha * {name}", scaled)
    return scaled


@rule("mul", "multiply")
def _mul(call: Call) -> Result:
    x, y = call.operands()
    return x * y


@rule("square")
def _square(call: Call) -> Result:
    return power(call.operand("self"), 2)


@rule("neg", "negative")
def _neg(call: Call) -> Result:
    return -call.operand("self")


@rule("abs", "absolute")
def _abs(call: Call) -> Result:
    return abs(call.operand("self"))


@rule("sign", "sgn")
def _sign(call: Call) -> Result:
    return minimum(maximum(call.operand("self"), IntegerRange.point(-1)), _ONE)


@rule("relu")
def _relu(call: Call) -> Result:
    return maximum(call.operand("self"), _ZERO)


@rule("maximum")
def _maximum(call: Call) -> Result:
    return maximum(*call.operands())


@rule("minimum")
def _minimum(call: Call) -> Result:
    return minimum(*call.operands())


@rule("clamp", "clip", "clamp_min", "clamp_max")
def _clamp(call: Call) -> Result:
    values = call.operand("self")
    if call.has("min"):
        values = maximum(values, call.operand("min"))
    return minimum(values, call.operand("max")) if call.has("max") else values


# Division: TOSA's INTDIV rounds to zero, the lowering corrects that.


def _quotient(call: Call, x: IntegerRange, y: IntegerRange) -> IntegerRange | None:
    if 0 in y:
        call.cannot_lower("the divisor may be zero")
    quotient = trunc_divide(x, y)
    call.computes("trunc(self / other)", quotient)
    return quotient


@rule("floor_divide")
def _floor_divide(call: Call) -> Result:
    x, y = call.operands()
    _quotient(call, x, y)
    return floor_divide(x, y)


@rule("div", "divide")
def _div(call: Call) -> Result:
    if call.arguments.get("rounding_mode") == "floor":
        return _floor_divide(call)
    return _quotient(call, *call.operands())


@rule("remainder")
def _remainder(call: Call) -> Result:
    x, y = call.operands()
    _quotient(call, x, y)
    quotient, remainder = floor_divide(x, y), floor_remainder(x, y)
    if quotient is not None and remainder is not None:
        # Two bounds for one product, of which each is the closer one at times.
        by_parts, by_rest = quotient * y, x - remainder
        product = IntegerRange(
            max(by_parts.lo, by_rest.lo), min(by_parts.hi, by_rest.hi)
        )
        call.computes("floor(self / other)", quotient)
        call.computes("floor(self / other) * other", product)
    return remainder


@rule("fmod")
def _fmod(call: Call) -> Result:
    x, y = call.operands()
    _quotient(call, x, y)
    return trunc_remainder(x, y)


# Powers, sums and products -----------------------------------------------------------


@rule("pow")
def _pow(call: Call) -> Result:
    x, exponent = call.operand("self"), call.operand("exponent")
    if exponent.lo < 0 or exponent.hi > _MOST_FACTORS:
        return None
    if isinstance(call.arguments["exponent"], Node):
        call.cannot_lower("a power of integers is lowered for a constant exponent")
    for factors in range(2, exponent.hi):
        call.computes(f"self ** {factors}", power(x, factors))
    return join(power(x, e) for e in range(exponent.lo, exponent.hi + 1))


@rule("sum")
def _sum(call: Call) -> Result:
    return _sum_of(call, call.elements("self", call.arguments.get("dim")))


@rule("cumsum")
def _cumsum(call: Call) -> Result:
    return _sum_of(call, _up_to(call.size("self", call.arguments["dim"])))


def _sum_of(call: Call, count: IntegerRange) -> IntegerRange:
    values = call.operand("self")
    call.computes("a partial sum of self", IntegerRange(0, count.hi) * values)
    return count * values


@rule("prod")
def _prod(call: Call) -> Result:
    return _product_of(call, call.elements("self", call.arguments.get("dim")))


@rule("cumprod")
def _cumprod(call: Call) -> Result:
    return _product_of(call, _up_to(call.size("self", call.arguments["dim"])))


def _product_of(call: Call, count: IntegerRange) -> IntegerRange | None:
    values = call.operand("self")
    if values.within(IntegerRange(-1, 1)):
        return join((values, values * values, *([_ONE] if 0 in count else [])))
    if count.hi > _MOST_FACTORS:
        return None
    products = [_ONE]
    for _ in range(count.hi):
        products.append(products[-1] * values)
    call.computes("a partial product of self", join(products))
    return join(products[count.lo :])


def _up_to(size: IntegerRange) -> IntegerRange:
    return IntegerRange(1, max(size.hi, 1))


# Bits --------------------------------------------------------------------------------


@rule("bitwise_and", "__and__")
def _and(call: Call) -> Result:
    x, y = call.operands()
    return x & y


@rule("bitwise_or", "__or__")
def _or(call: Call) -> Result:
    x, y = call.operands()
    return x | y


@rule("bitwise_xor", "__xor__")
def _xor(call: Call) -> Result:
    x, y = call.operands()
    return x ^ y


@rule("bitwise_not")
def _not(call: Call) -> Result:
    return ~call.operand("self")


@rule("bitwise_left_shift", "__lshift__")
def _left_shift(call: Call) -> Result:
    return _shift(call, operator.lshift)


@rule("bitwise_right_shift", "__rshift__")
def _right_shift(call: Call) -> Result:
    return _shift(call, operator.rshift)


def _shift(
    call: Call, shift: Callable[[IntegerRange, IntegerRange], IntegerRange]
) -> Result:
    values, bits = call.operands()
    if not bits.within(_INT32_BITS):
        call.cannot_lower(
            f"the shift may be by {bits.lo if bits.lo < 0 else bits.hi} bits, "
            "which int32 does not have"
        )
    width = DTYPE_RANGES[call.dtype].hi.bit_length()
    return shift(values, bits) if bits.within(IntegerRange(0, width - 1)) else None


# Quantization ------------------------------------------------------------------------


@rule("quantize_per_tensor", "quantize_per_channel")
def _quantize(call: Call) -> Result:
    return join((call.operand("quant_min"), call.operand("quant_max")))
