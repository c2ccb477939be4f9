# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Which argmin and argmax an Arm target takes, and why not the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from arm_ext.partitioner.reasoned_check import TargetCheck
from arm_ext.passes.index_sources import ARG_OPS, argument, is_call
from executorch.backends.arm.constants import DQ_OPS
from executorch.backends.arm.operator_support.tosa_supported_operators import (
    is_quantized,
)
from executorch.backends.arm.tosa.specification import TosaSpecification
from torch.fx import Node

_FLOATS = (torch.float16, torch.bfloat16, torch.float32)

# Ethos-U55's ARGMAX, as ``vela --supported-ops-report`` lists it.
_U55_MOST_CHANNELS = 127
_U55_MOST_PLACES = 65536


def dtype_in_delegate(node: Node) -> torch.dtype:
    """Return the dtype in which a delegate gets the first input of ``node``.

    In a quantized node the dequantize in front is folded.

    """
    source = node.all_input_nodes[0]
    if source.target in DQ_OPS and is_quantized(node):
        source = source.all_input_nodes[0]
    return source.meta["val"].dtype


def why_not_dtype(dtype: torch.dtype, spec: TosaSpecification) -> str | None:
    """Say why TOSA's ARGMAX does not take ``dtype`` under ``spec``."""
    if dtype in _FLOATS and not spec.support_float():
        return f"the input is {dtype} and not quantized, and {spec} has no float"
    if dtype is torch.bfloat16 and not spec.support_extension("bf16"):
        return "bfloat16 needs the extension bf16 in the TOSA specification"
    if dtype in (torch.int8, torch.int16, torch.int32) and not spec.support_integer():
        return f"{dtype} needs the INT profile in the TOSA specification"
    if dtype is torch.int16 and not spec.support_extension("int16"):
        return "int16 needs the extension int16 in the TOSA specification"
    if dtype not in (*_FLOATS, torch.int8, torch.int16, torch.int32):
        return f"TOSA has no ARGMAX of {dtype}"
    return None


class ArgMinMaxCheck(TargetCheck):
    """Reject the ``argmin`` and ``argmax`` that cannot be lowered."""

    def why_not(self, node: Node) -> str | None:
        if not is_call(node, ARG_OPS):
            return None
        shape = node.all_input_nodes[0].meta["val"].shape
        dim = argument(node, "dim")
        dtype = dtype_in_delegate(node)
        if reason := why_not_dtype(dtype, self._tosa_spec):
            return reason
        # Of all elements, the op reads one flat dimension.
        reduced = shape if dim is None or not shape else (shape[dim],)
        if not _are_known(reduced):
            return "the size of the dimension is not known when the program is lowered"
        is_reshaped = argument(node, "keepdim") or dtype is torch.int32
        if is_reshaped and not _are_known(shape):
            return "a result is reshaped whose size is not known"
        if not self._tosa_spec.is_U55_subset:
            return None
        is_last = dim is None or dim % max(len(shape), 1) == len(shape) - 1
        return _why_not_on_u55(dtype, shape, math.prod(reduced), is_last)


def _are_known(sizes: Sequence[Any]) -> bool:
    return all(isinstance(size, int) for size in sizes)


def _why_not_on_u55(
    dtype: torch.dtype, shape: torch.Size, size: int, is_last: bool
) -> str | None:
    if not _are_known(shape):
        return "ARGMAX of Ethos-U55 takes sizes known when the program is lowered"
    if dtype is not torch.int8:
        return f"ARGMAX of Ethos-U55 takes int8, not {dtype}"
    if not is_last:
        return "ARGMAX of Ethos-U55 takes the last dimension only"
    if size > _U55_MOST_CHANNELS:
        return (
            f"ARGMAX of Ethos-U55 takes {_U55_MOST_CHANNELS} elements at most, "
            f"not {size}"
        )
    if math.prod(shape) // size > _U55_MOST_PLACES:
        return (
            f"ARGMAX of Ethos-U55 takes {_U55_MOST_PLACES} results at most, "
            f"not {math.prod(shape) // size}"
        )
    return None
