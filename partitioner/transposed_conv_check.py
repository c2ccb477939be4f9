# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Which transposed convolutions the backend can lower once they are rewritten."""

from __future__ import annotations

from typing import cast

import torch
from arm_ext.partitioner.reasoned_check import ReasonedCheck
from arm_ext.passes.transposed_conv import insertions, TransposedConv
from executorch.backends.arm._passes.arm_pass_utils import get_first_fake_tensor
from executorch.backends.arm.constants import DQ_OPS
from executorch.backends.arm.tosa.specification import TosaSpecification
from executorch.exir.backend.utils import WhyNoPartitionReporter
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import ExportedProgram
from torch.fx import Node

_PER_CHANNEL = exir_ops.edge.quantized_decomposed.dequantize_per_channel.default


def _quantized_dtype(node: Node) -> torch.dtype | None:
    """Return the dtype behind a dequantize; None where there is none."""
    if node.target not in DQ_OPS:
        return None
    return get_first_fake_tensor(node.all_input_nodes[0]).dtype


def needs_rewrite(node: Node, spec: TosaSpecification) -> bool:
    """Return whether ``RewriteTransposedConvPass`` changes an edge node."""
    conv = TransposedConv.of(node)
    if conv is None or len(conv.kernel) > 2:
        return False
    int16 = _quantized_dtype(node.all_input_nodes[0]) is torch.int16
    return (
        len(conv.kernel) == 1
        or set(conv.dilation) != {1}
        or conv.crops_whole_kernel
        or (spec.is_U55_subset and not conv.fits_u55(int16))
    )


class TransposedConvCheck(ReasonedCheck):
    """Reject a transposed convolution that cannot be rewritten, with the reason.

    Those that need no rewrite are the stock check's.

    Args:
        program (ExportedProgram): The program that holds the nodes.
        tosa_spec (TosaSpecification): The specification to lower for.
        reporter (WhyNoPartitionReporter): Takes the reasons.

    """

    def __init__(
        self,
        program: ExportedProgram,
        tosa_spec: TosaSpecification,
        reporter: WhyNoPartitionReporter,
    ) -> None:
        super().__init__(reporter)
        signature = program.graph_signature
        written = set(signature.buffers_to_mutate.values())
        self._constants = {
            *signature.inputs_to_parameters,
            *signature.inputs_to_lifted_tensor_constants,
            *(
                name
                for name, buffer in signature.inputs_to_buffers.items()
                if buffer not in written
            ),
        }
        self._tosa_spec = tosa_spec

    def why_not(self, node: Node) -> str | None:
        conv = TransposedConv.of(node)
        if conv is None or not needs_rewrite(node, self._tosa_spec):
            return None
        x, weight = cast(tuple[Node, Node], node.args[:2])
        if not all(isinstance(size, int) for size in get_first_fake_tensor(x).shape):
            return "a transposed convolution of a dynamic shape is not rewritten"
        if not self._is_constant(weight):
            return f"the weight {weight.name} is not a constant of the program"
        if conv.groups > 1 and weight.target == _PER_CHANNEL:
            return (
                "a grouped weight with one scale a channel, of which no one group was "
                "made when the model was prepared"
            )
        if len(conv.kernel) == 1 and _quantized_dtype(weight) is not None:
            return (
                "a quantized 1-D transposed convolution, of which no 2-D one was made "
                "when the model was prepared"
            )
        return self._why_not_u55(conv) if self._tosa_spec.is_U55_subset else None

    def _is_constant(self, weight: Node) -> bool:
        if weight.target in DQ_OPS:
            weight = weight.all_input_nodes[0]
        return weight.op == "placeholder" and weight.name in self._constants

    @staticmethod
    def _why_not_u55(conv: TransposedConv) -> str | None:
        """Vela's limits of what the rewrite leaves, SUPPORTED_OPS.md."""
        spread = [
            size * stride + max(axis.left, 0) + max(axis.right, 0)
            for size, stride, axis in zip(conv.size, conv.stride, insertions(conv))
        ]
        if max(spread) > 65536:
            return f"Ethos-U55 takes sizes up to 65536, here {max(spread)}"
        kernel = [reach + 1 for reach in conv.reach]
        height, area = (1, *kernel)[-2], torch.Size(kernel).numel()
        if height > 64 or area > 4096:
            return (
                "Ethos-U55 takes a dilated kernel of height 64 and 4096 elements at "
                f"most, here {height} and {area}"
            )
        return None
