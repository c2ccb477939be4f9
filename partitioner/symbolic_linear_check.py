# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Leave a matrix product with a symbolic size on the CPU."""

from __future__ import annotations

import torch
from arm_ext.partitioner.reasoned_check import TargetCheck
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import Node

# Those that the lowering surrounds with reshapes; bmm needs none.
_RESHAPED = (
    exir_ops.edge.aten.addmm.default,
    exir_ops.edge.aten.linear.default,
    exir_ops.edge.aten.mm.default,
)


class SymbolicLinearCheck(TargetCheck):
    """Reject a matrix product with a symbolic size, unless TOSA has shape ops.

    Its lowering reshapes the operands, which takes TOSA's shape extension where a
    size is not known. The stock check knows the ops that reshape in the program
    itself.

    """

    def why_not(self, node: Node) -> str | None:
        if node.target not in _RESHAPED or self._tosa_spec.support_extension("shape"):
            return None
        if not any(map(_is_symbolic, (node, *node.all_input_nodes))):
            return None
        return (
            "matrix product with a symbolic size; that takes the shape extension in "
            "the TOSA specification"
        )


def _is_symbolic(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and any(
        isinstance(size, torch.SymInt) for size in value.shape
    )
