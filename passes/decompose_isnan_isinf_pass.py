# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Set, Type

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.backends.arm._passes.fuse_constant_ops_pass import (
    ComputeConstantOpsAOTPass,
)
from executorch.backends.arm._passes.match_arg_ranks_pass import MatchArgRanksPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass

_aten = exir_ops.edge.aten

ISNAN = _aten.isnan.default
ISINF = _aten.isinf.default


class DecomposeIsNanIsInfPass(ArmOpTargetedPass):
    """Decompose isnan and isinf into comparisons.

    TOSA's EQUAL is false where an operand is NaN, as IEEE 754 has it.

    Input graph::

        x -> isnan -> y
        x -> isinf -> y

    Output graph::

        (x, x) -> eq -> logical_not -> y
        x -> abs -> eq(inf) -> y

    The input is a float: ``NormalizeIsNanIsInfFmodPass`` folds the others.

    """

    _passes_required_after: Set[Type[ExportPass]] = {
        ComputeConstantOpsAOTPass,
        MatchArgRanksPass,
    }
    target_ops = (ISNAN, ISINF)

    def call_operator(self, op, args, kwargs, meta, updated=False):
        if op not in self.target_ops:
            return super().call_operator(op, args, kwargs, meta, updated)

        def call(op, *args, **kwargs):
            return super(DecomposeIsNanIsInfPass, self).call_operator(
                op, args, kwargs, meta, updated=True
            )

        (x,) = args
        if op == ISNAN:
            return call(_aten.logical_not.default, call(_aten.eq.Tensor, x, x))
        ones, dtype = (1,) * x.data.dim(), x.data.dtype
        infinity = call(_aten.full.default, ones, torch.inf, dtype=dtype)
        return call(_aten.eq.Tensor, call(_aten.abs.default, x), infinity)
