# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Leave an int64 constant of a branch on the CPU."""

from __future__ import annotations

import torch
from executorch.backends.arm.tosa import TosaSpecification
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase


class BranchInt64Check(OperatorSupportBase):
    """Reject what reads an int64 constant in a branch that stays on the CPU.

    Such a constant is an attribute of the branch and becomes an input of the
    delegate. The stock check looks at no attribute; the lowering then stops at an
    input whose dtype TOSA does not have.

    """

    def __init__(
        self, tosa_spec: TosaSpecification, reporter: WhyNoPartitionReporter
    ) -> None:
        self._stays_on_cpu = not tosa_spec.support_extension("cf")
        self._reporter = reporter

    def is_node_supported(self, submodules: object, node: Node) -> bool:
        if not self._stays_on_cpu:
            return True
        for constant in node.all_input_nodes:
            if _is_int64_attribute(constant):
                self._reporter.report_reject(
                    node, f"int64 constant {constant.name} in a branch or loop body"
                )
                return False
        return True


def _is_int64_attribute(node: Node) -> bool:
    value = node.meta.get("val")
    return (
        node.op == "get_attr"
        and isinstance(value, torch.Tensor)
        and value.dtype == torch.int64
    )
