# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Keep index ops on the CPU whose constant index was not narrowed to int32."""

import torch
from arm_ext.partitioner.reasoned_check import ReasonedCheck
from arm_ext.passes.index_ops import match
from arm_ext.passes.narrow_constant_index_pass import CONSTANT_INDEX_REJECT_KEY
from executorch.exir import ExportedProgram
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch.fx import Node


class ConstantIndexCheck(ReasonedCheck):
    """Reject what ``NarrowConstantIndexPass`` refused, with its reason.

    Also rejects what the pass never sees and the backend takes and cannot
    lower: an int64 index in a branch of control flow, where a constant is an
    argument of the branch, and a mask that is known only at run time.

    """

    def __init__(
        self, exported_program: ExportedProgram, reporter: WhyNoPartitionReporter
    ) -> None:
        super().__init__(reporter)
        self._program = exported_program

    def why_not(self, node: Node) -> str | None:
        return node.meta.get(CONSTANT_INDEX_REJECT_KEY) or self._unseen(node)

    def _unseen(self, node: Node) -> str | None:
        if (op := match(node)) is None:
            return None
        indices = [index for index in op.indices if index is not None]
        dtypes = {index.meta["val"].dtype for index in indices if "val" in index.meta}
        if not op.is_write and dtypes & {torch.bool, torch.uint8}:
            return "the mask is not constant: the shape of the result depends on data"
        if torch.int64 not in dtypes:
            return None
        if node.graph is not self._program.graph:
            return "the int64 index is an argument of a control-flow branch"
        if any(self._is_lifted_constant(index) for index in indices):
            return "the int64 index was not narrowed to int32"
        return None

    def _is_lifted_constant(self, index: Node) -> bool:
        signature = self._program.graph_signature
        return index.name in signature.inputs_to_lifted_tensor_constants
