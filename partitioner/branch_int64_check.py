# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Leave an int64 constant of a branch on the CPU."""

from __future__ import annotations

import torch
from arm_ext.partitioner.reasoned_check import ReasonedCheck
from executorch.backends.arm.tosa import TosaSpecification
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch.fx import Node


class BranchInt64Check(ReasonedCheck):
    """Reject what reads an int64 constant in a branch that stays on the CPU.

    Such a constant is an attribute of the branch and becomes an input of the
    delegate. The stock check looks at no attribute; the lowering then stops at an
    input whose dtype TOSA does not have.

    """

    def __init__(
        self, tosa_spec: TosaSpecification, reporter: WhyNoPartitionReporter
    ) -> None:
        super().__init__(reporter)
        self._stays_on_cpu = not tosa_spec.support_extension("cf")

    def why_not(self, node: Node) -> str | None:
        if not self._stays_on_cpu:
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
