# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""An op that the quantizer does not know by its name is not quantized.

The gap
    ``torch.hstack``, ``swapaxes``, ``x.mT``, ``narrow``, ``expand_as``, ``square``,
    ``std``, ``relu6`` and some sixty others are whole in an exported program, and in
    none of the quantizer's lists. They are decomposed into ops that are, but behind the
    quantizer: what they are made of stays in float, on the CPU of an integer
    target, and splits the graph.
What is done
    Before annotation ``DecomposeCompositePass`` decomposes them as PyTorch does.
What is refused
    An op with a part that the quantizer does not know either, one that writes to a
    tensor, symbolic sizes: they are left as they are. A quantization that is set
    for the target or the name of such a node does not reach its parts.

"""

from __future__ import annotations

import operator
from typing import Any, cast

import torch
from arm_ext import fix
from arm_ext.fixes._passes import run_before_annotation
from arm_ext.operators import Operator, QUANTIZED, TARGETS
from arm_ext.passes.decompose_composite_pass import DecomposeCompositePass
from arm_ext.patcher import Patcher
from executorch.backends.arm.quantizer.arm_quantizer_utils import SharedQspecQuantizer
from executorch.backends.arm.quantizer.quantizer_support import (
    TOSA_QUANTIZER_SUPPORT_DICT,
)
from torch._ops import OpOverload
from torch.fx import Node

_SHARED = SharedQspecQuantizer.SHARED_QSPEC_OPS_DEFAULT

# Those that were tried; others with known parts are taken too.
_TRIED = (
    *("absolute", "addcmul", "adjoint", "atleast_2d", "baddbmm", "broadcast_to"),
    *("cartesian_prod", "channel_shuffle", "clamp_min", "clip", "column_stack"),
    *("cross", "deg2rad", "diff", "divide", "dsplit", "dstack", "expand_as"),
    *("fliplr", "flipud", "greater", "hsplit", "hstack", "inner", "kron"),
    *("linalg_multi_dot", "logaddexp", "mT", "max", "meshgrid", "multiply", "narrow"),
    *("negative", "numpy_T", "outer", "ravel", "relu6", "reshape_as", "rot90"),
    *("square", "std", "subtract", "swapaxes", "swapdims", "take_along_dim"),
    *("tensor_split", "tensordot", "true_divide", "type_as", "vsplit", "vstack"),
)

OPERATORS = tuple(
    Operator(
        f"aten.{op}",
        QUANTIZED,
        TARGETS,
        "static size; those of the ops that it is made of",
        DecomposeCompositePass,
    )
    for op in _TRIED
)


def needs(installed: fix.Installed) -> fix.Need:
    del installed
    if torch.ops.aten.hstack.default in _SHARED:
        return fix.already_fixed("the quantizer annotates hstack")
    return fix.apply()


def install(patcher: Patcher) -> None:
    run_before_annotation(patcher, _decompose)


def _decompose() -> DecomposeCompositePass:
    return DecomposeCompositePass(_is_known, _is_annotated, tfa_pass=True)


def _is_known(op: Any) -> bool:
    return op in _SHARED or any(
        op in pattern for pattern in TOSA_QUANTIZER_SUPPORT_DICT
    )


def _is_annotated(node: Node) -> bool:
    """Whether the quantizer annotates a node of a known op, by itself."""
    if node.target is operator.getitem or node.target in _SHARED:
        return True
    pattern = (cast(OpOverload, node.target),)
    if pattern not in TOSA_QUANTIZER_SUPPORT_DICT or not isinstance(node.args[0], Node):
        return False
    check = TOSA_QUANTIZER_SUPPORT_DICT[pattern]
    return check is None or check.check_pattern([node])
