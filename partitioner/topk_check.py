# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Which topk, sort and kthvalue an Arm target takes, and why not the others."""

from __future__ import annotations

import operator
from typing import Any, cast

from arm_ext.partitioner.arg_min_max_check import dtype_in_delegate, why_not_dtype
from arm_ext.partitioner.reasoned_check import TargetCheck
from arm_ext.passes.decompose_topk_pass import selection_of
from arm_ext.passes.index_sources import is_call, SELECTION_OPS
from executorch.backends.arm.constants import DQ_OPS, Q_OPS
from executorch.backends.arm.operator_support.tosa_supported_operators import (
    is_quantized,
)
from torch.fx import Node

_MOST_ELEMENTS = 4096


class TopKCheck(TargetCheck):
    """Reject the ``topk``, ``sort`` and ``kthvalue`` that cannot be lowered."""

    def why_not(self, node: Node) -> str | None:
        if not is_call(node, SELECTION_OPS):
            return None
        if self._tosa_spec.is_U55_subset:
            return "Ethos-U55 has no GATHER and no SCATTER"
        if reason := why_not_dtype(dtype_in_delegate(node), self._tosa_spec):
            return reason
        x, *others = cast(tuple[Any, ...], node.args)
        shape = x.meta["val"].shape
        if not all(isinstance(size, int) for size in shape):
            return "a size of the input is not known when the program is lowered"
        what = selection_of(node.target, shape, tuple(others), node.kwargs)
        size = shape[what.dim] if shape else 1
        if size > _MOST_ELEMENTS:
            return f"the dimension has {size} elements, more than {_MOST_ELEMENTS}"
        if not isinstance(what.k, int):
            return "how many are selected is not known when the program is lowered"
        if what.k == 0 or 0 in shape:
            return "the result is empty"
        return _why_not_values(node)


def _why_not_values(node: Node) -> str | None:
    """Say why quantized values are not the input's: they are only moved."""
    source = node.all_input_nodes[0]
    if source.target not in DQ_OPS or not is_quantized(node):
        return None
    for values in node.users:
        if not is_call(values, (operator.getitem,)) or values.args[1] != 0:
            continue
        if not is_quantized(values) or any(
            user.target not in Q_OPS or user.args[1:] != source.args[1:]
            for user in values.users
        ):
            return "the values are not quantized as the input is"
    return None
