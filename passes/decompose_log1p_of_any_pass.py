# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Set, Type

from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.backends.arm._passes.match_arg_ranks_pass import MatchArgRanksPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass

_aten = exir_ops.edge.aten


class DecomposeLog1pOfAnyPass(ArmOpTargetedPass):
    """Decompose log1p of a float, to the last digits for any argument.

    ``DecomposeLog1pPass`` takes six terms of the Taylor series for all that is below
    0.001, so also for -0.9 (-1.92 for -2.30), and loses digits above it. Here the error
    of 1 + x, which is known exactly, is divided out again.

    Input graph::

        x: float -> log1p -> y

    Output graph::

        u = x + 1;  w = u - 1
        log(u) * x / w -> z
        where(w == x, log(u), where(w == 0, x, z)) -> y

    """

    _passes_required_after: Set[Type[ExportPass]] = {MatchArgRanksPass}
    target_ops = (_aten.log1p.default,)

    def call_operator(self, op, args, kwargs, meta, updated=False):
        if op not in self.target_ops or self._is_quantized_meta(meta):
            return super().call_operator(op, args, kwargs, meta, updated)

        def call(op, *args, **kwargs):
            return super(DecomposeLog1pOfAnyPass, self).call_operator(
                op, args, kwargs, meta, updated=True
            )

        (x,) = args
        ones, dtype = (1,) * x.data.dim(), x.data.dtype
        one = call(_aten.full.default, ones, 1.0, dtype=dtype)
        zero = call(_aten.full.default, ones, 0.0, dtype=dtype)
        sum_ = call(_aten.add.Tensor, x, one)
        log = call(_aten.log.default, sum_)
        added = call(_aten.sub.Tensor, sum_, one)
        ratio = call(_aten.mul.Tensor, x, call(_aten.reciprocal.default, added))
        inexact = call(_aten.mul.Tensor, log, ratio)
        tiny = call(_aten.eq.Tensor, added, zero)
        exact = call(_aten.eq.Tensor, added, x)
        rest = call(_aten.where.self, tiny, x, inexact)
        return call(_aten.where.self, exact, log, rest)
