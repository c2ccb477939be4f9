# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A support check that never rejects without saying why."""

from __future__ import annotations

import abc
from collections.abc import Mapping

import torch
from executorch.backends.arm.tosa.specification import TosaSpecification
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase


class ReasonedCheck(OperatorSupportBase):
    """Reject the nodes that :meth:`why_not` has a reason for, and report it.

    Args:
        reporter (WhyNoPartitionReporter): Takes the reason of a rejected node.

    """

    def __init__(self, reporter: WhyNoPartitionReporter) -> None:
        self._reporter = reporter

    @abc.abstractmethod
    def why_not(self, node: Node) -> str | None:
        """Return why ``node`` cannot be lowered, or None where it can be."""

    def is_node_supported(
        self, submodules: Mapping[str, torch.nn.Module], node: Node
    ) -> bool:
        """Return False, and report the reason, if the node cannot be lowered."""
        del submodules
        reason = self.why_not(node)
        if reason is not None:
            self._reporter.report_reject(node, reason)
        return reason is None


class TargetCheck(ReasonedCheck):
    """A check that depends on what is lowered for.

    Args:
        tosa_spec (TosaSpecification): The specification to lower for.
        reporter (WhyNoPartitionReporter): Takes the reason of a rejected node.

    """

    def __init__(
        self, tosa_spec: TosaSpecification, reporter: WhyNoPartitionReporter
    ) -> None:
        super().__init__(reporter)
        self._tosa_spec = tosa_spec
