# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Any, Set, Type

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass

_aten = exir_ops.edge.aten
_FLOATS = (torch.float16, torch.bfloat16, torch.float32)
_INTEGERS = (torch.int8, torch.int16, torch.int32)

_ROUND = frozenset({_aten.ceil.default, _aten.floor.default, _aten.round.default})
# Which arguments make a result whole if they are.
_KEEP_WHOLE = {
    _aten.add.Tensor: slice(None),
    _aten.clamp.default: slice(None),
    _aten.full.default: slice(1, 2),
    _aten.sub.Tensor: slice(None),
    _aten.where.self: slice(1, 3),
}


def _is_whole(node: torch.fx.Node) -> bool:
    """Whether no element of a node has a fraction, by what it is made of."""
    seen = set()
    to_visit: list[Any] = [node]
    while to_visit:
        value = to_visit.pop()
        if value is None or value in seen:
            continue
        if not isinstance(value, torch.fx.Node):
            if not float(value).is_integer():
                return False
            continue
        seen.add(value)
        if not value.meta["val"].dtype.is_floating_point or value.target in _ROUND:
            continue
        if value.target not in _KEEP_WHOLE or "alpha" in value.kwargs:
            return False
        to_visit.extend(value.args[_KEEP_WHOLE[value.target]])
    return True


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

    What is whole already, as in a decomposed quantize, is left as it is. A value
    beyond the integer's range saturates; in PyTorch it is undefined.

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
        if (source, result) == (torch.float32, torch.int32):
            return False
        return not _is_whole(x.node)
