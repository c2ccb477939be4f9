# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Set, Type

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass

_aten = exir_ops.edge.aten
_FLOATS = (torch.float16, torch.bfloat16, torch.float32)
_INTEGERS = (torch.int8, torch.int16, torch.int32)


class TruncateFloatCastPass(ArmOpTargetedPass):
    """Have a cast from a float to an integer round towards zero.

    TOSA's CAST rounds to the nearest, half to even; PyTorch drops the fraction.
    ``DecorateFp32toInt32CastingPass`` sees to fp32 to int32 alone, this pass to the
    other float and integer dtypes in the same way.

    Input graph::

        x: fp32 -> _to_dim_order_copy(int8)

    Output graph::

        x -> floor -------\\
        x -> ceil ---------> where -> _to_dim_order_copy(int8)
        x -> ge(full(0)) -/

    A value beyond the integer's range saturates; in PyTorch it is undefined.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()
    target_ops = (exir_ops.edge.dim_order_ops._to_dim_order_copy.default,)

    def call_operator(self, op, args, kwargs, meta, updated=False):
        if op not in self.target_ops or not self._rounds(args[0], meta):
            return super().call_operator(op, args, kwargs, meta, updated)

        def call(op, args, kwargs):
            return super(TruncateFloatCastPass, self).call_operator(
                op, args, kwargs, meta, updated=True
            )

        (x,) = args
        shape = (1,) * x.data.dim()
        zero = call(_aten.full.default, (shape, 0.0), {"dtype": x.data.dtype})
        whole = call(
            _aten.where.self,
            (
                call(_aten.ge.Tensor, (x, zero), {}),
                call(_aten.floor.default, (x,), {}),
                call(_aten.ceil.default, (x,), {}),
            ),
            {},
        )
        return call(op, (whole,), kwargs)

    @staticmethod
    def _rounds(x, meta) -> bool:
        source, result = x.data.dtype, meta["val"].dtype
        if source not in _FLOATS or result not in _INTEGERS:
            return False
        if x.node.meta.get("output_qparams"):
            return False  # an integer by now
        return (source, result) != (torch.float32, torch.int32)
