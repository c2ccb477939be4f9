# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Leave nodes on the CPU by name."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping

from arm_ext.partitioner.reasoned_check import ReasonedCheck
from executorch.backends.arm.constants import DQ_OPS, Q_OPS
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch.fx import Node


class ExcludedCheck(ReasonedCheck):
    """Reject the nodes that are excluded, and all that are not to be tried.

    A ``getitem`` goes with its producer. Where only some nodes are to be tried, the
    quantizes and dequantizes beside them are tried, too.

    Args:
        excluded (Mapping): The reason by the name of the node.
        only (Collection | None): Names of the nodes to be tried; None for all.
        reporter (WhyNoPartitionReporter): Takes the reason of a rejected node.

    """

    def __init__(
        self,
        excluded: Mapping[str, str],
        only: Collection[str] | None,
        reporter: WhyNoPartitionReporter,
    ) -> None:
        super().__init__(reporter)
        self._excluded = excluded
        self._only = only

    def why_not(self, node: Node) -> str | None:
        if node.op != "call_function":
            return None
        if node.target is operator.getitem and isinstance(node.args[0], Node):
            node = node.args[0]
        if node.name in self._excluded:
            return self._excluded[node.name]
        return None if self._is_tried(node) else "not among the nodes to be tried"

    def _is_tried(self, node: Node) -> bool:
        if self._only is None or node.name in self._only:
            return True
        beside = (*node.all_input_nodes, *node.users)
        return is_quantize_or_dequantize(node) and any(
            other.name in self._only for other in beside
        )


def is_quantize_or_dequantize(node: Node) -> bool:
    """Whether a node only converts between a quantized value and its float value."""
    return node.target in Q_OPS or node.target in DQ_OPS
