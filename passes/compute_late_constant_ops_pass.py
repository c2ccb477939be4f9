# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Set, Type

from executorch.backends.arm._passes.fuse_constant_ops_pass import (
    ComputeConstantOpsAOTPass,
)
from executorch.backends.arm._passes.fuse_equal_placeholders_pass import (
    FuseEqualPlaceholdersPass,
)
from executorch.exir.pass_base import ExportPass
from torch.fx import Node


class ComputeLateConstantOpsPass(ComputeConstantOpsAOTPass):
    """Compute the constants that passes behind ``InsertTableOpsPass`` ask for.

    Input graph::

        arange(0, 4, 1, dtype=int32) -> y

    Output graph::

        constant int32[4] -> y

    The stock pass of this kind runs earlier, in front of the one that folds
    whatever depends on constants alone. Here there is nothing to fold.

    """

    _passes_required_after: Set[Type[ExportPass]] = {FuseEqualPlaceholdersPass}

    def compute_node_aot(self, node: Node) -> bool:
        """Replace one node by its value, under a name that no constant has yet."""
        taken = {other.name for other in node.graph.nodes}
        number = 0
        while f"{node.name}_pre_computed" in taken:
            number += 1
            node._rename(f"late_constant_{number}")
        return super().compute_node_aot(node)
