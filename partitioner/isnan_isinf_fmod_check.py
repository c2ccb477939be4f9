# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Which fmod, isnan and isinf an Arm target takes, and why not the others."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from arm_ext.partitioner.reasoned_check import TargetCheck
from arm_ext.passes.decompose_fmod_pass import divisor_in, FMOD, LEAST_DIVISOR
from arm_ext.passes.decompose_isnan_isinf_pass import ISINF, ISNAN
from executorch.backends.arm.constants import DQ_OPS
from executorch.backends.arm.operator_support.tosa_supported_operators import (
    is_quantized,
)
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import Node

FMOD_BY_TENSOR = exir_ops.edge.aten.fmod.Tensor

_FLOATS = (torch.float16, torch.bfloat16, torch.float32)
_INT32 = torch.iinfo(torch.int32)


class IsNanIsInfFmodCheck(TargetCheck):
    """Reject the ``fmod``, ``isnan`` and ``isinf`` that cannot be lowered."""

    def why_not(self, node: Node) -> str | None:
        if node.op != "call_function":
            return None
        if node.target in (ISNAN, ISINF):
            return self._why_not_test(node)
        if node.target == FMOD_BY_TENSOR:
            return (
                "the divisor is not one constant: a quotient without a bound takes "
                "fmod too many steps to be exact, and an integer divisor may be 0"
            )
        if node.target == FMOD:
            return self._why_not_fmod(node)
        return None

    def _why_not_test(self, node: Node) -> str | None:
        dtype = node.all_input_nodes[0].meta["val"].dtype
        if dtype in _FLOATS and not self._tosa_spec.support_float():
            return f"the input is {dtype}, and {self._tosa_spec} has no float"
        if dtype not in _FLOATS:
            return f"an input of {dtype} is never NaN or infinite"
        return None

    def _why_not_fmod(self, node: Node) -> str | None:
        x, divisor = cast(tuple[Node, float], node.args)
        dtype = x.meta["val"].dtype
        if node.meta["val"].dtype != dtype:
            return f"the dividend is {dtype} and the result {node.meta['val'].dtype}"
        if is_quantized(node) and x.target in DQ_OPS:
            return _why_not_table(x)
        if dtype == torch.int32:
            return _why_not_integer(divisor)
        if dtype not in _FLOATS:
            return f"fmod of {dtype} is not lowered"
        if not self._tosa_spec.support_float():
            return (
                f"the input is {dtype} and not quantized, and {self._tosa_spec} has "
                "no float"
            )
        size = divisor_in(dtype, divisor)
        if not LEAST_DIVISOR <= size < math.inf:
            return (
                f"the divisor {divisor} is not of a size from {LEAST_DIVISOR:g} to the "
                f"largest {dtype}"
            )
        return None


def _why_not_table(dequantize: Node) -> str | None:
    dtype = dequantize.all_input_nodes[0].meta["val"].dtype
    if dtype == torch.int8:
        return None
    return f"fmod jumps, and the TABLE of {dtype} interpolates"


def _why_not_integer(divisor: Any) -> str | None:
    if divisor == 0:
        return "an integer is divided by 0"
    if not _INT32.min <= divisor <= _INT32.max:
        return f"the divisor {divisor} is no int32"
    return None
