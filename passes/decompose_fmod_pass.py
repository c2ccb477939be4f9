# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Set, Type

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.backends.arm._passes.decompose_div_tensor_mode import (
    DecomposeDivTensorModePass,
)
from executorch.backends.arm._passes.fuse_constant_ops_pass import (
    ComputeConstantOpsAOTPass,
)
from executorch.backends.arm._passes.insert_table_ops import InsertTableOpsPass
from executorch.backends.arm._passes.match_arg_ranks_pass import MatchArgRanksPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass

_aten = exir_ops.edge.aten
_cast = exir_ops.edge.dim_order_ops._to_dim_order_copy.default

FMOD = _aten.fmod.Scalar

# The divisor, and with it what is left of the dividend in the last step, is far
# from the subnormal numbers, which a device may flush to zero.
LEAST_DIVISOR = 2.0**-32

# Bits of an fp32 significand, and how many of them a product of two halves has.
_BITS = 24
_HALF = _BITS // 2
# A step takes this many bits off the quotient.
_STEP = 12
# Keeps what a step adds to the dividend from overflowing.
_SCALE = 2.0**-2


@dataclass(frozen=True)
class Multiple:
    """``high + low``, a multiple of the divisor by a power of two.

    A product of either part with an integer below ``2**_STEP`` is exact in fp32.

    """

    high: float
    low: float

    @property
    def value(self) -> float:
        return self.high + self.low


def _multiple(value: float) -> Multiple:
    mantissa, exponent = math.frexp(value)
    high = math.ldexp(round(math.ldexp(mantissa, _HALF)), exponent - _HALF)
    return Multiple(high, value - high)


def multiples(divisor: float, largest_exponent: int) -> list[Multiple]:
    """Return what :class:`DecomposeFmodPass` divides by, the largest first.

    Args:
        divisor (float): A positive fp32 value.
        largest_exponent (int): The dividend is below two to its power.

    """
    found = [_multiple(divisor)]
    while math.ldexp(found[-1].value, _STEP - 1) < math.ldexp(1.0, largest_exponent):
        found.append(_multiple(math.ldexp(found[-1].value, _STEP)))
    return found[::-1]


class DecomposeFmodPass(ArmOpTargetedPass):
    """Decompose fmod by a constant, exactly.

    In fp32 ``x - trunc(x / y) * y`` is off by up to a whole ``y``: the quotient is
    rounded, and so is its product with ``y``. Here the quotient ``k`` is taken off a
    few bits at a time, which leaves nothing to round. With ``c`` a multiple of ``y``
    by a power of two, in two halves of at most 12 bits each, a step is::

        k = floor(r * (1 / c) + almost 1/2)
        r = (r - k * high(c)) - k * low(c)

    ``k`` has at most 12 bits, so both products are exact. Both differences are
    because they are multiples of the last place of ``c`` and not much larger than
    ``c``, or, where ``k`` is 1, within a factor of 2 (Sterbenz). That ``k`` is the
    nearest integer, give or take a little, is all that is asked of ``1 / c``.
    "Almost" keeps ``r`` just below ``c / 2`` from being rounded up, which has no
    exact difference.

    Input graph::

        x -> fmod(y) -> z

    Output graph, for floats::

        x -> abs -> a
        a -> step with y * 2^(12 * n) -> ... -> step with y -> r
        where(r < 0, r + y, r)   the remainder of a
        where(x < 0, -r, r)      has the sign of the dividend,
        where(a < y, x, r)       and is the dividend where that is smaller

    An fp32 dividend takes 11 steps for a ``y`` around 1, fewer for a larger one, fp16
    2; ``low(c)`` is left out where it is 0. A power of two from 1 on is divided by
    in one exact step. Infinite dividends, and NaN, give NaN.

    fp16 and bf16 are cast to fp32 in front and back behind. An int32 is
    ``x - div(x, y, trunc) * y``. A quantized fmod is left to ``InsertTableOpsPass``.

    """

    _passes_required_after: Set[Type[ExportPass]] = {
        ComputeConstantOpsAOTPass,
        DecomposeDivTensorModePass,
        InsertTableOpsPass,
        MatchArgRanksPass,
    }
    target_ops = (FMOD,)

    def call_operator(self, op, args, kwargs, meta, updated=False):
        if op not in self.target_ops or self._is_quantized_meta(meta):
            return super().call_operator(op, args, kwargs, meta, updated)

        def call(op, *args, **kwargs):
            return super(DecomposeFmodPass, self).call_operator(
                op, args, kwargs, meta, updated=True
            )

        x, divisor = args
        if x.data.dtype.is_floating_point:
            return _fmod_of_float(call, x, divisor)
        return _fmod_of_int(call, x, divisor)


def _fmod_of_int(call: Callable[..., Any], x: Any, divisor: int) -> Any:
    # The sign of the divisor does not matter, and the least int32 by -1 overflows.
    size = divisor if divisor == torch.iinfo(torch.int32).min else abs(divisor)
    y = _full(call, x, size)
    quotient = call(_aten.div.Tensor_mode, x, y, rounding_mode="trunc")
    return call(_aten.sub.Tensor, x, call(_aten.mul.Tensor, quotient, y))


def _fmod_of_float(call: Callable[..., Any], x: Any, divisor: float) -> Any:
    dtype = x.data.dtype
    y = divisor_in(dtype, divisor)
    if dtype is not torch.float32:
        x = call(_cast, x, dtype=torch.float32)
    size = call(_aten.abs.default, x)
    if y >= 1 and math.frexp(y)[0] == 0.5:
        r = _remainder_by_power_of_two(call, size, y)
    else:
        r = _remainder(call, size, y, math.frexp(torch.finfo(dtype).max)[1])
    zero = _full(call, x, 0.0)
    is_negative = call(_aten.gt.Tensor, zero, x)
    z = call(_aten.where.self, is_negative, call(_aten.neg.default, r), r)
    is_smaller = call(_aten.gt.Tensor, _full(call, x, y), size)
    z = call(_aten.where.self, is_smaller, x, z)
    return z if dtype is torch.float32 else call(_cast, z, dtype=dtype)


def divisor_in(dtype: torch.dtype, divisor: float) -> float:
    """Return the magnitude of a divisor as ATen rounds it to the dividend's dtype."""
    return abs(torch.tensor(divisor, dtype=torch.float64).to(dtype).item())


def _remainder_by_power_of_two(call: Callable[..., Any], x: Any, y: float) -> Any:
    quotient = call(_aten.mul.Tensor, x, _full(call, x, 1 / y))
    whole = call(_aten.floor.default, quotient)
    return call(_aten.sub.Tensor, x, call(_aten.mul.Tensor, whole, _full(call, x, y)))


def _remainder(
    call: Callable[..., Any], x: Any, y: float, largest_exponent: int
) -> Any:
    """Return ``x mod y`` for ``x >= 0``."""
    r = call(_aten.mul.Tensor, x, _full(call, x, _SCALE))
    almost_half = _full(call, x, 0.5 - 2.0**-9)
    scaled = math.frexp(_SCALE)[1] - 1 + largest_exponent
    for c in multiples(y * _SCALE, scaled):
        quotient = call(_aten.mul.Tensor, r, _full(call, x, 1 / c.value))
        nearest = call(_aten.add.Tensor, quotient, almost_half)
        k = call(_aten.floor.default, nearest)
        for part in (c.high, c.low):
            if part:
                product = call(_aten.mul.Tensor, k, _full(call, x, part))
                r = call(_aten.sub.Tensor, r, product)
    is_negative = call(_aten.gt.Tensor, _full(call, x, 0.0), r)
    wrapped = call(_aten.add.Tensor, r, _full(call, x, y * _SCALE))
    r = call(_aten.where.self, is_negative, wrapped, r)
    return call(_aten.mul.Tensor, r, _full(call, x, 1 / _SCALE))


def _full(call: Callable[..., Any], x: Any, value: float) -> Any:
    """Return a constant of the dtype of ``x`` that broadcasts with it."""
    return call(_aten.full.default, (1,) * x.data.dim(), value, dtype=x.data.dtype)
