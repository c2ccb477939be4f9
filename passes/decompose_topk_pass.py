# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Set, Type

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.backends.arm._passes.arm_pass_utils import meta_without_qparams
from executorch.backends.arm._passes.exir_to_tosa_pass import ExirToTosaPass
from executorch.backends.arm.tosa.specification import get_context_spec
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass, ProxyValue

from .compute_late_constant_ops_pass import ComputeLateConstantOpsPass

_aten = exir_ops.edge.aten
_tosa = exir_ops.backend.tosa
_cast = exir_ops.edge.dim_order_ops._to_dim_order_copy.default

# The elements whose rank is counted at once: what bounds the memory.
BLOCK = 256
# One ARGMAX costs about as many cycles of an Ethos-U as this many comparisons.
_COMPARISONS_PER_ARGMAX = 13
# TOSA's level 8k has no CONCAT of more tensors.
_MOST_ROUNDS = 64
_OPS_PER_ROUND = 3
_OPS_PER_BLOCK = 5
_MOST_FLOAT = torch.finfo(torch.float32).max


@dataclass(frozen=True)
class Selection:
    """The ``k`` extreme elements along a dimension, in order.

    Attributes:
        dim (int): The dimension, not negative; 0 for a scalar.
        k (int): How many.
        largest (bool): Whether the largest come first.
        only_last (bool): Whether only the k-th is wanted, as in ``kthvalue``.
        keepdim (bool): Whether then the dimension stays, with size 1.

    """

    dim: int
    k: int
    largest: bool
    only_last: bool = False
    keepdim: bool = True


def _topk(shape, k, dim=-1, largest=True, sorted=True) -> Selection:
    return Selection(dim % max(len(shape), 1), k, largest)


def _sort(shape, dim=-1, descending=False) -> Selection:
    dim %= max(len(shape), 1)
    return Selection(dim, shape[dim] if shape else 1, descending)


def _stable_sort(shape, stable=None, dim=-1, descending=False) -> Selection:
    return _sort(shape, dim, descending)


def _kthvalue(shape, k, dim=-1, keepdim=False) -> Selection:
    return Selection(dim % max(len(shape), 1), k, False, True, keepdim)


_SELECTIONS: dict[Any, Callable[..., Selection]] = {
    _aten.topk.default: _topk,
    _aten.sort.default: _sort,
    _aten.sort.stable: _stable_sort,
    _aten.kthvalue.default: _kthvalue,
}


def selection_of(
    op: Any, shape: torch.Size, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Selection:
    """Return what ``op`` selects of an input of ``shape``; ``args`` are the others."""
    return _SELECTIONS[op](shape, *args, **kwargs)


def repeats_argmax(size: int, k: int, is_npu: bool) -> bool:
    """Whether ``k`` rounds of ARGMAX cost less than to count ranks.

    Rounds take ``k`` times ``size`` steps, ranks ``size`` squared. An Ethos-U is
    bound by the steps; on a GPU each op is a dispatch, so there the ops count.

    """
    if k > _MOST_ROUNDS:
        return False
    if is_npu:
        return k * _COMPARISONS_PER_ARGMAX <= size
    return _OPS_PER_ROUND * k <= _OPS_PER_BLOCK * math.ceil(size / BLOCK) + 5


class _Lazy:
    """What a selection returns; values are gathered where they are asked for."""

    def __init__(self, index: Callable, values: Callable) -> None:
        self._make = {0: values, 1: index}
        self._made: dict[int, ProxyValue] = {}

    def __getitem__(self, key: int) -> ProxyValue:
        if key not in self._made:
            self._made[key] = self._make[key]()
        return self._made[key]


class DecomposeTopKPass(ArmOpTargetedPass):
    """Lower ``topk``, ``sort`` and ``kthvalue`` to TOSA.

    The dimension is brought to the end and the others are merged, ``B`` rows of
    ``N``. Each row gives ``k`` int32 places, of equal values the first place first
    and NaN as the largest, and GATHER takes the values there: they are the
    input's, bit for bit, with its qparams.

    Input graph::

        x: int8[2, 3, 40] -> topk(2, 1) -> int8[2, 2, 40], int64[2, 2, 40]

    Output graph::

        x -> permute_copy -> view_copy -> int8[80, 3] -> (places) -> int32[80, 2]
        GATHER(x as int8[80, 3, 1], places) -> int8[80, 2, 1] -> view_copy
        -> permute_copy -> int8[2, 2, 40]; the places likewise

    **Places by rounds**, for a small ``k``: ARGMAX gives the next place, and SCATTER
    puts there what no element has, the least of all::

        key -> ARGMAX -> i0; SCATTER(key, i0, least) -> ARGMAX -> i1; ... CONCAT

    The key is int16 for int8 (so that -32768 is free), the code itself for a16w8,
    whose codes start at -32767, and for floats half the value in fp32, which leaves
    room for infinity and NaN below the largest float. Floats that differ in the
    last bit of a subnormal count as equal by that.

    **Places by rank**, otherwise: an element's rank is the number of elements in
    front of it, and SCATTER puts its place there::

        GREATER(key[B, 1, N], key[B, C, 1]) -> cast -> sum -> rank: int32[B, C]
        SCATTER(zeros, rank, iota) -> slice_copy(0, k)

    for ``C`` = 256 elements at a time: the comparison of one block takes 5 * 256
    bytes for each element of the input, and nothing is larger. int8 and int16
    have the key ``x * N + (N - 1 - i)``, so no two are equal; int32 and floats are
    compared by GREATER_EQUAL where the other place comes first.

    Ops with the same input and arguments share one computation.

    """

    _passes_required_after: Set[Type[ExportPass]] = {
        ComputeLateConstantOpsPass,
        ExirToTosaPass,
    }
    target_ops = tuple(_SELECTIONS)

    def call(self, graph_module):
        self._done: dict[Any, _Lazy] = {}
        return super().call(graph_module)

    def call_operator(self, op, args, kwargs, meta, updated=False):
        if op not in self.target_ops:
            return super().call_operator(op, args, kwargs, meta, updated)
        x, *others = args
        key = (op, x.node, tuple(others), tuple(sorted(kwargs.items())))
        if key not in self._done:
            selection = selection_of(op, x.data.shape, tuple(others), kwargs)
            codes = meta.data.get("input_qparams", {}).get(0)
            rows = _Rows(self._emit(meta_without_qparams(meta)), x, selection, codes)
            self._done[key] = _Lazy(rows.index, rows.values)
        return self._done[key]

    def call_getitem(self, value, key, meta):
        if isinstance(value, _Lazy):
            return value[key]
        return super().call_getitem(value, key, meta)

    def _emit(self, meta) -> Callable[..., ProxyValue]:
        def emit(op: Any, *args: Any, **kwargs: Any) -> ProxyValue:
            return super(DecomposeTopKPass, self).call_operator(
                op, args, kwargs, meta, True
            )

        return emit


class _Rows:
    """The lowering of one selection; ``emit`` adds an op to the graph."""

    def __init__(
        self,
        emit: Callable[..., ProxyValue],
        x: ProxyValue,
        what: Selection,
        codes: Any,
    ) -> None:
        self._emit = emit
        self._what = what
        self._codes = codes
        self._spec = get_context_spec()
        self._shape = list(x.data.shape) or [1]
        self._is_scalar = not x.data.shape
        self._size = self._shape[what.dim]
        self._count = math.prod(self._shape) // self._size
        self._last = [d for d in range(len(self._shape)) if d != what.dim] + [what.dim]
        x = self._view(x, self._shape)
        self._x = self._view(self._permute(x, self._last), [self._count, self._size])
        self._places = self._find_places()

    def index(self) -> ProxyValue:
        """Return the places, int32, in the shape of the op's result."""
        return self._as_result(self._places)

    def values(self) -> ProxyValue:
        """Return the elements there, in the shape of the op's result."""
        source = self._view(self._x, [self._count, self._size, 1])
        return self._as_result(self._emit(_tosa.GATHER.default, source, self._places))

    def _as_result(self, rows: ProxyValue) -> ProxyValue:
        if self._is_scalar:
            return self._view(rows, [])
        others = [self._shape[d] for d in self._last[:-1]]
        if self._what.only_last and not self._what.keepdim:
            return self._view(rows, others)
        k = 1 if self._what.only_last else self._what.k
        back = [self._last.index(d) for d in range(len(self._last))]
        return self._permute(self._view(rows, [*others, k]), back)

    def _find_places(self) -> ProxyValue:
        """Return the places of the selected elements, int32[B, k]."""
        k = self._what.k
        key = None
        if repeats_argmax(self._size, k, self._is_npu):
            key = self._key_for_rounds()
        places = self._by_rank() if key is None else self._by_rounds(*key)
        return self._slice(places, k - 1, k) if self._what.only_last else places

    @property
    def _is_npu(self) -> bool:
        return not self._spec.support_float()

    # Rounds of ARGMAX.

    def _key_for_rounds(self) -> tuple[ProxyValue, float] | None:
        """Return int16 or fp32 keys and what is less than each; None if nothing is."""
        dtype = self._x.data.dtype
        if dtype.is_floating_point:
            return self._float_key(), -math.inf
        if not self._spec.support_extension("int16"):
            return None
        least = torch.iinfo(torch.int16).min
        if dtype is torch.int8:
            key = self._x
            if not self._what.largest:
                key = self._emit(_aten.bitwise_not.default, key)
            return self._to(key, torch.int16), least
        if dtype is torch.int16 and self._codes is not None:
            if self._codes.qmin > least:
                key = self._x
                if not self._what.largest:
                    key = self._emit(_aten.neg.default, key)
                return key, least
        return None

    def _by_rounds(self, key: ProxyValue, least: float) -> ProxyValue:
        dtype = key.data.dtype
        rows = [self._count, self._size]
        found: list[ProxyValue] = []
        for number in range(self._what.k):
            if number:
                mask = self._full([self._count, 1, 1], least, dtype)
                key = self._emit(
                    _tosa.SCATTER.default, self._view(key, [*rows, 1]), found[-1], mask
                )
            place = self._emit(_tosa.ARGMAX.default, self._view(key, rows), 1)
            found.append(self._view(place, [self._count, 1]))
        return found[0] if len(found) == 1 else self._emit(_aten.cat.default, found, 1)

    # Ranks.

    def _by_rank(self) -> ProxyValue:
        key, is_unique = self._key_for_ranks()
        ranks = [
            self._ranks(key, start, min(start + BLOCK, self._size), is_unique)
            for start in range(0, self._size, BLOCK)
        ]
        rank = ranks[0] if len(ranks) == 1 else self._emit(_aten.cat.default, ranks, 1)
        # FP alone has no SCATTER of int32; fp32 holds the places as well.
        number = torch.int32 if self._spec.support_integer() else torch.float32
        iota = self._arange(0, self._size, 1, number, [1, self._size, 1])
        zeros = self._full([self._count, self._size, 1], 0, number)
        if self._count > 1:
            # An Ethos-U broadcasts; a TILE would be a copy for each row.
            iota = self._emit(_aten.add.Tensor, zeros, iota)
        order = self._emit(_tosa.SCATTER.default, zeros, rank, iota)
        order = self._view(order, [self._count, self._size])
        return self._to(self._slice(order, 0, self._what.k), torch.int32)

    def _key_for_ranks(self) -> tuple[ProxyValue, bool]:
        """Return keys, the first one the greatest, and whether no two are equal."""
        dtype = self._x.data.dtype
        if dtype.is_floating_point:
            return self._float_key(), False
        if dtype is torch.int32:
            if self._what.largest:
                return self._x, False
            return self._emit(_aten.bitwise_not.default, self._x), False
        scale = self._size if self._what.largest else -self._size
        key = self._to(self._x, torch.int32)
        key = self._emit(_aten.mul.Tensor, key, self._full([1, 1], scale, torch.int32))
        first = self._arange(self._size - 1, -1, -1, torch.int32, [1, self._size])
        return self._emit(_aten.add.Tensor, key, first), True

    def _ranks(
        self, key: ProxyValue, start: int, end: int, is_unique: bool
    ) -> ProxyValue:
        """Return how many elements come before each in [start, end), int32."""
        size = end - start
        others = self._view(key, [self._count, 1, self._size])
        block = self._view(self._slice(key, start, end), [self._count, size, 1])
        before = self._emit(_aten.gt.Tensor, others, block)
        if not is_unique:
            or_equal = self._emit(_aten.ge.Tensor, others, block)
            place = self._arange(start, end, 1, self._compared, [1, size, 1])
            other = self._arange(0, self._size, 1, self._compared, [1, 1, self._size])
            is_earlier = self._emit(_aten.gt.Tensor, place, other)
            before = self._emit(_aten.where.self, is_earlier, or_equal, before)
        if self._spec.support_integer():
            ones = self._to(before, torch.int32)
        else:
            one, zero = (self._full([1, 1, 1], v, torch.float32) for v in (1, 0))
            ones = self._emit(_aten.where.self, before, one, zero)
        rank = self._emit(_aten.sum.dim_IntList, ones, [2], True)
        return self._to(self._view(rank, [self._count, size]), torch.int32)

    @property
    def _compared(self) -> torch.dtype:
        return torch.int32 if self._spec.support_integer() else torch.float32

    def _float_key(self) -> ProxyValue:
        """Return fp32 keys: half the value, infinity and NaN inside the range."""
        x = self._to(self._x, torch.float32)
        half = 0.5 if self._what.largest else -0.5
        key = self._emit(_aten.mul.Tensor, x, self._full([1, 1], half, torch.float32))
        infinity = 0.75 * _MOST_FLOAT
        key = self._emit(_aten.clamp.default, key, -infinity, infinity)
        # NaN is the largest, so the last of the smallest.
        nan = _MOST_FLOAT if self._what.largest else -_MOST_FLOAT
        is_number = self._emit(_aten.eq.Tensor, x, x)
        nan = self._full([1, 1], nan, torch.float32)
        return self._emit(_aten.where.self, is_number, key, nan)

    # Ops in the form that they have behind the passes that canonicalize them.

    def _view(self, x: ProxyValue, shape: list[int]) -> ProxyValue:
        if list(x.data.shape) == shape:
            return x
        return self._emit(_aten.view_copy.default, x, shape)

    def _permute(self, x: ProxyValue, dims: list[int]) -> ProxyValue:
        if dims == sorted(dims):
            return x
        return self._emit(_aten.permute_copy.default, x, dims)

    def _slice(self, x: ProxyValue, start: int, end: int) -> ProxyValue:
        if (start, end) == (0, x.data.shape[1]):
            return x
        return self._emit(_aten.slice_copy.Tensor, x, 1, start, end)

    def _to(self, x: ProxyValue, dtype: torch.dtype) -> ProxyValue:
        return x if x.data.dtype is dtype else self._emit(_cast, x, dtype=dtype)

    def _full(self, shape: list[int], value: float, dtype: torch.dtype) -> ProxyValue:
        return self._emit(_aten.full.default, shape, value, dtype=dtype)

    def _arange(
        self, start: int, end: int, step: int, dtype: torch.dtype, shape: list[int]
    ) -> ProxyValue:
        numbers = self._emit(_aten.arange.start_step, start, end, step, dtype=dtype)
        return self._view(numbers, shape)
