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


class DecomposeRoundToEvenPass(ArmOpTargetedPass):
    """Decompose round of a float, halves to the even neighbour.

    ``DecomposeRoundPass`` adds a half and truncates: 1 for 0.5, where PyTorch gives 0,
    and 1 for the largest float below 0.5. No step here rounds.

    Input graph::

        x: float -> round -> y

    Output graph::

        low = floor(x);  part = x - low
        odd = floor(low / 2) != low / 2
        up = part > 0.5 or (part == 0.5 and odd)
        where(up, low + 1, low) -> y

    """

    _passes_required_after: Set[Type[ExportPass]] = {MatchArgRanksPass}
    target_ops = (_aten.round.default,)

    def call_operator(self, op, args, kwargs, meta, updated=False):
        if op not in self.target_ops or self._is_quantized_meta(meta):
            return super().call_operator(op, args, kwargs, meta, updated)

        def call(op, *args, **kwargs):
            return super(DecomposeRoundToEvenPass, self).call_operator(
                op, args, kwargs, meta, updated=True
            )

        (x,) = args
        if not x.data.dtype.is_floating_point:
            return super().call_operator(op, args, kwargs, meta, updated)
        ones, dtype = (1,) * x.data.dim(), x.data.dtype
        half = call(_aten.full.default, ones, 0.5, dtype=dtype)
        one = call(_aten.full.default, ones, 1.0, dtype=dtype)
        low = call(_aten.floor.default, x)
        part = call(_aten.sub.Tensor, x, low)
        half_of_low = call(_aten.mul.Tensor, low, half)
        even = call(
            _aten.eq.Tensor, call(_aten.floor.default, half_of_low), half_of_low
        )
        tie = call(_aten.eq.Tensor, part, half)
        odd_tie = call(
            _aten.logical_and.default, tie, call(_aten.logical_not.default, even)
        )
        more = call(_aten.gt.Tensor, part, half)
        up = call(_aten.logical_or.default, more, odd_tie)
        return call(_aten.where.self, up, call(_aten.add.Tensor, low, one), low)
