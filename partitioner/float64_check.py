# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Why float64 arithmetic stays on the CPU."""

from __future__ import annotations

import torch
from arm_ext.partitioner.reasoned_check import ReasonedCheck
from arm_ext.passes.narrow_float64_pass import (
    is_narrowing,
    is_widening,
    NOT_ROUNDED,
    ROUNDED_ONCE,
)
from torch.fx import Node


class Float64Check(ReasonedCheck):
    """Reject what is float64 still after ``NarrowFloat64Pass``."""

    def why_not(self, node: Node) -> str | None:
        if node.op != "call_function" or not has_float64(node):
            return None
        return (
            "TOSA has no float64, and float32 would not give the same digits: "
            f"{_why_other(node)}. If they do not matter, cast to float32 in front of "
            "it; a delegate then computes it"
        )


def _why_other(node: Node) -> str:
    """Return why float32 may give other digits than the node's float64."""
    if is_narrowing(node):
        return "this cast is where float64 ends"
    if is_widening(node):
        return "what reads this cast rounds more than once"
    if node.target in ROUNDED_ONCE:
        return (
            "what it reads was rounded already, or is a constant that float32 has not"
        )
    if node.target in NOT_ROUNDED:
        return "what it moves is no float32"
    return "it computes with digits that float32 has not"


def has_float64(node: Node) -> bool:
    """Whether a node reads or makes a float64."""
    values = [value.meta.get("val") for value in (node, *node.all_input_nodes)]
    return any(isinstance(v, torch.Tensor) and v.dtype == torch.float64 for v in values)
