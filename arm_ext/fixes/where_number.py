# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""where with a number stays on the CPU of an integer target, and splits the graph.

The gap
    ``torch.where(mask, scores, torch.finfo(scores.dtype).min)`` is how attention is
    masked. The pass that makes the number a tensor before annotation knows the op of
    the edge dialect only, so that the quantizer sees a ``where.ScalarOther`` that it
    does not annotate: ``where`` and its ``scalar_tensor`` are floats on the CPU.
What is done
    Before annotation ``DecomposeWhereNumberPass`` makes the number a tensor of its
    own. The backend then annotates ``where``, and limits minus infinity there.
What is refused
    A number that promotes the dtype of the tensor; ``where`` on Ethos-U55, which has
    no SELECT.

"""

from __future__ import annotations

import torch
from arm_ext import fix
from arm_ext.fixes._passes import run_before_annotation
from arm_ext.operators import Operator, QUANTIZED, U85, VGF
from arm_ext.passes.decompose_where_number_pass import DecomposeWhereNumberPass
from arm_ext.patcher import Patcher
from executorch.backends.arm._passes import DecomposeWhereScalarOtherPass

OPERATORS = (
    Operator(
        "aten.where",
        QUANTIZED,
        (VGF, U85),
        "a tensor and a number of its dtype",
        DecomposeWhereNumberPass,
    ),
)


def needs(installed: fix.Installed) -> fix.Need:
    del installed
    if torch.ops.aten.where.ScalarOther in DecomposeWhereScalarOtherPass.target_ops:
        return fix.already_fixed("where with a number is decomposed before annotation")
    return fix.apply()


def install(patcher: Patcher) -> None:
    run_before_annotation(patcher, lambda: DecomposeWhereNumberPass(tfa_pass=True))
