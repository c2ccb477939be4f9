# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Why float64 arithmetic stays on the CPU."""

from __future__ import annotations

import torch
from arm_ext.partitioner.reasoned_check import ReasonedCheck
from torch.fx import Node


class Float64Check(ReasonedCheck):
    """Reject what is float64 still after ``NarrowFloat64Pass``."""

    def why_not(self, node: Node) -> str | None:
        if node.op != "call_function" or not has_float64(node):
            return None
        return (
            "TOSA has no float64; it is computed in float32 only where that gives the "
            "same digits, and where the partitioner takes it so"
        )


def has_float64(node: Node) -> bool:
    """Whether a node reads or makes a float64."""
    values = [value.meta.get("val") for value in (node, *node.all_input_nodes)]
    return any(isinstance(v, torch.Tensor) and v.dtype == torch.float64 for v in values)
