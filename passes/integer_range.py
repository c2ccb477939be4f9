# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Arithmetic on ranges of integers, exact: no operand and no result wraps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

_INTEGERS = (
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
)


@dataclass(frozen=True)
class IntegerRange:
    """The integers from ``lo`` to ``hi``, both included.

    Attributes:
        lo (int): Smallest value, of any size.
        hi (int): Largest value, not below ``lo``.

    """

    lo: int
    hi: int

    def __post_init__(self) -> None:
        if self.lo > self.hi:
            raise ValueError(f"no integer lies in [{self.lo}, {self.hi}]")

    @classmethod
    def point(cls, value: int) -> IntegerRange:
        return cls(value, value)

    @property
    def is_point(self) -> bool:
        return self.lo == self.hi

    def fits(self, dtype: torch.dtype) -> bool:
        """Whether ``dtype``, an integer type or bool, holds every value."""
        return self.within(DTYPE_RANGES[dtype])

    def within(self, other: IntegerRange) -> bool:
        return other.lo <= self.lo and self.hi <= other.hi

    def __contains__(self, value: int) -> bool:
        return self.lo <= value <= self.hi

    def __neg__(self) -> IntegerRange:
        return IntegerRange(-self.hi, -self.lo)

    def __add__(self, other: IntegerRange) -> IntegerRange:
        return IntegerRange(self.lo + other.lo, self.hi + other.hi)

    def __sub__(self, other: IntegerRange) -> IntegerRange:
        return self + -other

    def __mul__(self, other: IntegerRange) -> IntegerRange:
        return _of_ends(lambda a, b: a * b, self, other)

    def __invert__(self) -> IntegerRange:
        return IntegerRange(~self.hi, ~self.lo)

    def __and__(self, other: IntegerRange) -> IntegerRange:
        """Bitwise and, of two's complements."""
        if self.is_point and other.is_point:
            return IntegerRange.point(self.lo & other.lo)
        never_negative = [side.hi for side in (self, other) if side.lo >= 0]
        if never_negative:
            return IntegerRange(0, min(never_negative))
        either = max if self.hi >= 0 or other.hi >= 0 else min
        return IntegerRange(_all_bits(self, other).lo, either(self.hi, other.hi))

    def __or__(self, other: IntegerRange) -> IntegerRange:
        """Bitwise or, of two's complements."""
        return ~(~self & ~other)

    def __xor__(self, other: IntegerRange) -> IntegerRange:
        """Bitwise exclusive or, of two's complements."""
        if self.is_point and other.is_point:
            return IntegerRange.point(self.lo ^ other.lo)
        bits = _all_bits(self, other)
        signs = {
            (a < 0) != (b < 0) for a in (self.lo, self.hi) for b in (other.lo, other.hi)
        }
        return IntegerRange(
            bits.lo if True in signs else 0, bits.hi if False in signs else -1
        )

    def __lshift__(self, bits: IntegerRange) -> IntegerRange:
        return _of_ends(lambda a, b: a << b, self, bits)

    def __rshift__(self, bits: IntegerRange) -> IntegerRange:
        return _of_ends(lambda a, b: a >> b, self, bits)

    def __abs__(self) -> IntegerRange:
        if 0 in self:
            return IntegerRange(0, max(-self.lo, self.hi))
        return self if self.lo > 0 else -self


DTYPE_RANGES = {
    torch.bool: IntegerRange(0, 1),
    **{d: IntegerRange(torch.iinfo(d).min, torch.iinfo(d).max) for d in _INTEGERS},
}


def convert(values: IntegerRange, dtype: torch.dtype) -> IntegerRange:
    """Return the range after a cast, which wraps what does not fit."""
    if dtype == torch.bool and 0 not in values:
        return IntegerRange.point(1)
    return values if values.fits(dtype) else DTYPE_RANGES[dtype]


def join(ranges: Iterable[IntegerRange]) -> IntegerRange:
    """Return the smallest range that holds all of ``ranges``, of which there is one."""
    ranges = tuple(ranges)
    return IntegerRange(min(r.lo for r in ranges), max(r.hi for r in ranges))


def minimum(*ranges: IntegerRange) -> IntegerRange:
    return IntegerRange(min(r.lo for r in ranges), min(r.hi for r in ranges))


def maximum(*ranges: IntegerRange) -> IntegerRange:
    return IntegerRange(max(r.lo for r in ranges), max(r.hi for r in ranges))


def floor_divide(x: IntegerRange, y: IntegerRange) -> IntegerRange | None:
    """Quotients rounded down; None if every divisor is zero."""
    return _divide(lambda a, b: a // b, x, y)


def trunc_divide(x: IntegerRange, y: IntegerRange) -> IntegerRange | None:
    """Quotients rounded to zero; None if every divisor is zero."""

    def divide(a: int, b: int) -> int:
        return a // b if (a < 0) == (b < 0) else -(-a // b)

    return _divide(divide, x, y)


def floor_remainder(x: IntegerRange, y: IntegerRange) -> IntegerRange | None:
    """Remainders with the sign of the divisor, as Python's; None as above."""
    above, below = _without_zero(y)
    remainders = [] if above is None else [_remainder(x, above)]
    if below is not None:
        remainders.append(-_remainder(-x, -below))
    return join(remainders) if remainders else None


def _remainder(x: IntegerRange, y: IntegerRange) -> IntegerRange:
    """Remainders of positive divisors."""
    if y.is_point and x.lo // y.lo == x.hi // y.lo:
        return IntegerRange(x.lo % y.lo, x.hi % y.lo)
    if x.lo < 0:
        return IntegerRange(0, y.hi - 1)
    return x if x.hi < y.lo else IntegerRange(0, min(x.hi, y.hi - 1))


def trunc_remainder(x: IntegerRange, y: IntegerRange) -> IntegerRange | None:
    """Remainders with the sign of the dividend, as C's; None as above."""
    if y == IntegerRange.point(0):
        return None
    largest = abs(y).hi - 1
    if 0 not in y and abs(x).hi < abs(y).lo:
        return x
    return IntegerRange(max(min(x.lo, 0), -largest), min(max(x.hi, 0), largest))


def power(x: IntegerRange, exponent: int) -> IntegerRange:
    """One value to the power of ``exponent``, not negative."""
    base = abs(x) if exponent % 2 == 0 else x
    return IntegerRange(base.lo**exponent, base.hi**exponent)


def _divide(
    divide: Callable[[int, int], int], x: IntegerRange, y: IntegerRange
) -> IntegerRange | None:
    divisors = [part for part in _without_zero(y) if part is not None]
    return join(_of_ends(divide, x, part) for part in divisors) if divisors else None


def _without_zero(y: IntegerRange) -> tuple[IntegerRange | None, IntegerRange | None]:
    """Return the positive and the negative values."""
    above = IntegerRange(max(y.lo, 1), y.hi) if y.hi > 0 else None
    below = IntegerRange(y.lo, min(y.hi, -1)) if y.lo < 0 else None
    return above, below


def _of_ends(
    function: Callable[[int, int], int], x: IntegerRange, y: IntegerRange
) -> IntegerRange:
    """The range of a function that rises or falls along each operand."""
    values = [function(a, b) for a in (x.lo, x.hi) for b in (y.lo, y.hi)]
    return IntegerRange(min(values), max(values))


def _all_bits(*ranges: IntegerRange) -> IntegerRange:
    """What as many bits as the widest value has can hold, as two's complement."""
    ends = (end for values in ranges for end in (values.lo, values.hi))
    bits = max(max(end, ~end).bit_length() for end in ends)
    return IntegerRange(-(1 << bits), (1 << bits) - 1)
