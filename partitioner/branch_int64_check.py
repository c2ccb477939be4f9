# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Leave an int64 constant of a branch on the CPU."""

from __future__ import annotations

import torch
from arm_ext.partitioner.reasoned_check import TargetCheck
from torch.fx import Node


class BranchInt64Check(TargetCheck):
    """Reject what reads an int64 constant in a branch that stays on the CPU.

    Such a constant is an attribute of the branch and becomes an input of the
    delegate. The stock check looks at no attribute; the lowering then stops at an
    input whose dtype TOSA does not have.

    """

    def why_not(self, node: Node) -> str | None:
        if self._tosa_spec.support_extension("cf"):
            return None
        for constant in node.all_input_nodes:
            if _is_int64_attribute(constant):
                return f"int64 constant {constant.name} in a branch or loop body"
        return None


def _is_int64_attribute(node: Node) -> bool:
    value = node.meta.get("val")
    return (
        node.op == "get_attr"
        and isinstance(value, torch.Tensor)
        and value.dtype == torch.int64
    )
