# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Which int32 forms of int64 ops a target lowers exactly, and why int64 stays."""

from __future__ import annotations

from typing import Any

from arm_ext.partitioner.reasoned_check import TargetCheck
from arm_ext.passes.int32_forms import MOVES
from arm_ext.passes.narrow_constant_index_pass import CONSTANT_INDEX_REJECT_KEY
from arm_ext.passes.narrow_int64_pass import INT32_FORM_KEY, INT64_REJECT_KEY
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import Node

_edge = exir_ops.edge.aten

# The arithmetic on int32 that the FP profile has without the INT profile.
_FP_OPS = (
    *MOVES,
    _edge.add.Scalar,
    _edge.add.Tensor,
    _edge.embedding.default,
    _edge.full.default,
    _edge.gather.default,
    _edge.index.Tensor,
    _edge.index_put.default,
    _edge.index_select.default,
    _edge.mul.Scalar,
    _edge.mul.Tensor,
    _edge.sub.Scalar,
    _edge.sub.Tensor,
    exir_ops.edge.dim_order_ops._to_dim_order_copy.default,
)
# What stock takes for Ethos-U55 and lowers to floats, to a comparison, or to a shift
# that rounds otherwise.
_NOT_ON_U55 = (
    _edge.bitwise_right_shift.Tensor,
    _edge.div.Tensor_mode,
    _edge.floor_divide.default,
    _edge.remainder.Scalar,
    _edge.remainder.Tensor,
    _edge.sign.default,
    _edge.__rshift__.Scalar,
)


class Int64Check(TargetCheck):
    """Reject the int64 that has no int32 form, and forms that are not exact."""

    def why_not(self, node: Node) -> str | None:
        if CONSTANT_INDEX_REJECT_KEY in node.meta:
            return None  # that reason is closer
        if INT64_REJECT_KEY in node.meta:
            return f"it stays int64: {node.meta[INT64_REJECT_KEY]}"
        if INT32_FORM_KEY in node.meta:
            return self._why_not_exact(node.target)
        return None

    def _why_not_exact(self, target: Any) -> str | None:
        if not self._tosa_spec.support_integer() and target not in _FP_OPS:
            return f"{target.__name__} on int32 needs the INT profile"
        if self._tosa_spec.is_U55_subset and target in _NOT_ON_U55:
            return f"Ethos-U55 has no {target.__name__} on int32"
        return None
