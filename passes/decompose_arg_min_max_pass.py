# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

import math
from typing import Any, Set, Type

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.backends.arm._passes.arm_pass_utils import meta_without_qparams
from executorch.backends.arm._passes.exir_to_tosa_pass import ExirToTosaPass
from executorch.backends.arm.tosa.specification import get_context_spec
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass

from .compute_late_constant_ops_pass import ComputeLateConstantOpsPass

_aten = exir_ops.edge.aten
_tosa = exir_ops.backend.tosa


class DecomposeArgMinMaxPass(ArmOpTargetedPass):
    """Lower ``argmin`` and ``argmax`` to TOSA's ARGMAX.

    ARGMAX removes one axis, returns the first of equal maxima as int32, and NaN
    counts as a maximum: all of it as in ATen. The rest is brought to it.

    Input graph::

        x: int8[2, 3, 4] -> argmin(None, keepdim=True) -> int64[1, 1, 1]

    Output graph::

        x: int8[2, 3, 4] -> view_copy -> int8[24] -> bitwise_not -> ARGMAX(axis=0)
        -> int32[] -> view_copy -> int32[1, 1, 1]

    What reverses the order for ``argmin`` maps no two values to one: ``neg`` for
    floats; ``bitwise_not`` for integers, because the negative of -128 is no int8;
    on Ethos-U55, which has no BITWISE_NOT, a TABLE of it.

    TOSA has no ARGMAX of int32, so there it is the first place that equals the
    maximum::

        x: int32[*, N] -> amax -> eq(x) -> where(iota, N - 1) -> amin -> int32[*, 1]

    """

    _passes_required_after: Set[Type[ExportPass]] = {
        ComputeLateConstantOpsPass,
        ExirToTosaPass,
    }
    target_ops = (_aten.argmax.default, _aten.argmin.default)

    def call_operator(self, op, args, kwargs, meta, updated=False):
        if op not in self.target_ops:
            return super().call_operator(op, args, kwargs, meta, updated)
        meta = meta_without_qparams(meta)
        x, dim, keepdim = _arguments(*args, **kwargs)
        shape = list(x.data.shape)
        if dim is None or not shape:
            flat, axis = [math.prod(shape)], 0
            result = [1] * len(shape) if keepdim else []
        else:
            axis = dim % len(shape)
            flat = shape
            result = shape[:axis] + [1] * keepdim + shape[axis + 1 :]
            if get_context_spec().is_U55_subset:
                # It knows no batch; the partitioner lets only the last axis pass.
                flat, axis = [math.prod(shape[:-1]), shape[-1]], 1
        index = self._first(meta, op, self._view(meta, x, flat), axis)
        return self._view(meta, index, result)

    def _first(self, meta, op, x, dim: int):
        """Return the first place of an extremum; ``dim`` is removed or of size 1."""
        if x.data.dtype is torch.int32:
            return self._first_of_int32(meta, op, x, dim)
        if op is _aten.argmin.default:
            x = self._reverse(meta, x)
        return self._call(meta, _tosa.ARGMAX.default, x, dim)

    def _reverse(self, meta, x):
        if x.data.dtype.is_floating_point:
            return self._call(meta, _aten.neg.default, x)
        if not get_context_spec().is_U55_subset:
            return self._call(meta, _aten.bitwise_not.default, x)
        codes = self._arange(meta, 127, -129, -1, dtype=x.data.dtype)
        return self._call(meta, _tosa.TABLE.default, x, codes)

    def _first_of_int32(self, meta, op, x, dim: int):
        size = x.data.shape[dim]
        along_dim = [size if d == dim else 1 for d in range(x.data.dim())]
        minimum, maximum = _aten.amin.default, _aten.amax.default
        extremum = maximum if op is _aten.argmax.default else minimum
        best = self._call(meta, extremum, x, [dim], True)
        is_best = self._call(meta, _aten.eq.Tensor, x, best)
        iota = self._arange(meta, 0, size, 1, dtype=torch.int32)
        iota = self._view(meta, iota, along_dim)
        last = self._call(
            meta,
            _aten.full.default,
            [1] * x.data.dim(),
            size - 1,
            dtype=torch.int32,
        )
        place = self._call(meta, _aten.where.self, is_best, iota, last)
        return self._call(meta, minimum, place, [dim], True)

    def _view(self, meta, x, shape: list[int]):
        if list(x.data.shape) == shape:
            return x
        return self._call(meta, _aten.view_copy.default, x, shape)

    def _arange(self, meta, start: int, end: int, step: int, **kwargs: Any):
        return self._call(meta, _aten.arange.start_step, start, end, step, **kwargs)

    def _call(self, meta, op, *args: Any, **kwargs: Any):
        return super().call_operator(op, args, kwargs, meta, True)


def _arguments(x, dim=None, keepdim=False):
    return x, dim, keepdim
