# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Which ``conv_transpose1d`` the quantizer annotates.

The annotation is short-lived: it lets ``NormalizeConvTransposePass`` rewrite the
node as the ``conv_transpose2d`` that is annotated for good.

"""

import itertools

from arm_ext.passes.normalize_conv_transpose_pass import (
    CONV_TRANSPOSE1D,
    geometry,
    has_constant_weight,
    is_trained,
)
from executorch.backends.arm._passes.arm_pass_utils import get_first_fake_tensor
from executorch.backends.arm.quantizer.quantizer_support import (
    BATCH_NORM_OPS,
    combo_pattern,
    FUSED_ACTIVATION_OPS,
    PatternCheck,
    ReluFusedPatternCheck,
)
from torch.fx import Graph


class ConvTranspose1dCheck(PatternCheck):
    """Take what can be rewritten: a constant weight and a static shape.

    Groups are refused in quantization-aware training, because the block-diagonal
    weight that they become would not stay so.

    """

    @classmethod
    def check_pattern(cls, pattern) -> bool:
        conv = pattern[0]
        shape = get_first_fake_tensor(conv.args[0]).shape
        return has_constant_weight(conv) and all(isinstance(s, int) for s in shape)

    @classmethod
    def check_quantization_config(cls, pattern, quantization_config) -> bool:
        if quantization_config is None or geometry(pattern[0])[3] == 1:
            return True
        weight = quantization_config.get_weight_qspec()
        return weight is None or not is_trained(weight)


class FusedConvTranspose1dCheck(ConvTranspose1dCheck):
    """The same where an activation behind is fused."""

    @classmethod
    def check_pattern(cls, pattern) -> bool:
        return super().check_pattern(pattern) and ReluFusedPatternCheck.check_pattern(
            pattern
        )

    @classmethod
    def check_quantization_config(cls, pattern, quantization_config) -> bool:
        return super().check_quantization_config(
            pattern, quantization_config
        ) and ReluFusedPatternCheck.check_quantization_config(
            pattern, quantization_config
        )


def constants_first(graph: Graph) -> None:
    """Move the nodes of constants in front of all others.

    The quantizer sees a pattern only in nodes that follow each other, and a pass
    that traces the graph again puts each constant in front of its first user: that
    of a batch norm would part it from its convolution.

    """
    for node in reversed([node for node in graph.nodes if node.op == "get_attr"]):
        next(iter(graph.nodes)).prepend(node)


_CONV = [CONV_TRANSPOSE1D]

PATTERNS = {
    **dict.fromkeys(
        itertools.chain(combo_pattern(_CONV), combo_pattern(_CONV, BATCH_NORM_OPS)),
        ConvTranspose1dCheck,
    ),
    **dict.fromkeys(
        itertools.chain(
            combo_pattern(_CONV, FUSED_ACTIVATION_OPS),
            combo_pattern(_CONV, BATCH_NORM_OPS, FUSED_ACTIVATION_OPS),
        ),
        FusedConvTranspose1dCheck,
    ),
}
