# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""hstack, mT, narrow, expand_as and other moves of elements are not quantized.

The gap
    ``torch.hstack``, ``x.mT``, ``swapaxes``, ``narrow``, ``expand_as`` and others are
    whole in an exported program, and in none of the quantizer's lists. They are
    decomposed into ops that are, but behind the quantizer: those stay in float, on
    the CPU of an integer target, and split the graph.
What is done
    Before annotation ``DecomposeViewsAndJoinsPass`` decomposes them as PyTorch does,
    into moves that share one scale, as ``torch.cat`` and ``permute`` have it.
What is refused
    Symbolic sizes, and all ops that compute: those are left as they are. A
    quantization that is set for the target or the name of such a node does not
    reach its parts.

"""

from __future__ import annotations

import torch
from arm_ext import fix
from arm_ext.fixes._passes import run_before_annotation
from arm_ext.operators import Operator, QUANTIZED, TARGETS, U85, VGF
from arm_ext.passes.decompose_views_and_joins_pass import DecomposeViewsAndJoinsPass
from arm_ext.patcher import Patcher
from executorch.backends.arm.quantizer.arm_quantizer_utils import SharedQspecQuantizer

# Overloads share a row. Ethos-U55 has REVERSE for few shapes.
_NAMES = dict.fromkeys(
    op.overloadpacket.__name__ for op in DecomposeViewsAndJoinsPass.target_ops
)
_REVERSALS = ("fliplr", "flipud", "rot90")

OPERATORS = tuple(
    Operator(
        f"aten.{name}",
        QUANTIZED,
        (VGF, U85) if name in _REVERSALS else TARGETS,
        "static size",
        DecomposeViewsAndJoinsPass,
    )
    for name in _NAMES
)


def needs(installed: fix.Installed) -> fix.Need:
    del installed
    known = SharedQspecQuantizer.SHARED_QSPEC_OPS_DEFAULT
    if torch.ops.aten.hstack.default in known:
        return fix.already_fixed("the quantizer annotates hstack")
    return fix.apply()


def install(patcher: Patcher) -> None:
    run_before_annotation(patcher, lambda: DecomposeViewsAndJoinsPass(tfa_pass=True))
