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
from executorch.backends.arm._passes.insert_table_ops import InsertTableOpsPass
from executorch.backends.arm._passes.match_arg_ranks_pass import MatchArgRanksPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass

_aten = exir_ops.edge.aten
_cast = exir_ops.edge.dim_order_ops._to_dim_order_copy.default

# Beyond it softplus(x) == x and tanh(x) == 1 in fp32; ATen's threshold.
_THRESHOLD = 20.0


class DecomposeMishPass(ArmOpTargetedPass):
    """Decompose a floating-point mish without a cancellation or an overflow.

    Mish is ``x * tanh(softplus(x))``. With ``e = exp(x)`` the tangent is a
    quotient of polynomials, ``((1 + e)^2 - 1) / ((1 + e)^2 + 1)``, where the ones
    cancel out by hand::

        mish(x) = x * (n / (n + 2)),  n = e * (e + 2)

    That is exact to a few ulp also where ``softplus(x)`` is tiny and TOSA TANH
    underflows. ``e`` is taken of ``min(x, 20)``, so that ``n`` stays below 3e17.

    Input graph::

        x -> mish -> y

    Output graph::

        x -> clamp(max=20) -> exp -> e
        e -> add(2) -> mul(e) -> n
        n -> add(2) -> reciprocal -> mul(n) -> mul(x) -> y

    fp16 and bf16 are cast to fp32 in front and back behind. NaN and +inf are kept;
    -inf gives NaN, as in ATen. A quantized mish is left to ``InsertTableOpsPass``.

    """

    _passes_required_after: Set[Type[ExportPass]] = {
        ComputeConstantOpsAOTPass,
        InsertTableOpsPass,
        MatchArgRanksPass,
    }
    target_ops = (_aten.mish.default,)

    def call_operator(self, op, args, kwargs, meta, updated=False):
        if op not in self.target_ops or self._is_quantized_meta(meta):
            return super().call_operator(op, args, kwargs, meta, updated)

        def call(op, *args, **kwargs):
            return super(DecomposeMishPass, self).call_operator(
                op, args, kwargs, meta, updated=True
            )

        (x,) = args
        dtype = x.data.dtype
        if dtype is not torch.float32:
            x = call(_cast, x, dtype=torch.float32)
        two = call(_aten.full.default, (1,), 2.0, dtype=torch.float32)
        e = call(_aten.exp.default, call(_aten.clamp.default, x, None, _THRESHOLD))
        n = call(_aten.mul.Tensor, e, call(_aten.add.Tensor, e, two))
        inverse = call(_aten.reciprocal.default, call(_aten.add.Tensor, n, two))
        y = call(_aten.mul.Tensor, x, call(_aten.mul.Tensor, n, inverse))
        return y if dtype is torch.float32 else call(_cast, y, dtype=dtype)
