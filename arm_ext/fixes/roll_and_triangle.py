# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""roll and triu stay on the CPU, and a quantized tril goes wrong.

The gap
    ``roll`` is decomposed to an index computed in int64, which splits the graph, and
    where it is taken, as a constant, costs a GATHER, which Ethos-U55 has not. ``triu``
    is not annotated, so that on an integer target it is a float on the CPU. The mask
    of a ``tril`` is computed by the graph and quantized.
What is done
    Before annotation ``DecomposeRollPass`` makes slices and a ``cat``, and
    ``DecomposeTrianglePass`` a selection by a constant mask, which share their
    qparams. In a float graph the index is a constant that rotates a dimension:
    ``RewriteRotationPass`` makes slices of it before partitioning. Float masks are
    folded by ``float64-and-constants``.
What is refused
    A size that is not known when the program is lowered; ``triu`` and ``tril`` on
    Ethos-U55, which has no SELECT.

"""

from __future__ import annotations

import torch
from arm_ext import fix
from arm_ext.fixes._before_partition import rewrite_before_partition, run_pass, WhyNot
from arm_ext.fixes._passes import run_before_annotation
from arm_ext.operators import FLOAT, Operator, QUANTIZED, TARGETS, U85, VGF
from arm_ext.passes.decompose_roll_pass import DecomposeRollPass
from arm_ext.passes.decompose_triangle_pass import DecomposeTrianglePass
from arm_ext.passes.program_constants import ProgramConstants
from arm_ext.passes.rewrite_rotation_pass import is_index_select, RewriteRotationPass
from arm_ext.patcher import Patcher
from executorch.backends.arm.quantizer.quantizer_support import (
    TOSA_QUANTIZER_SUPPORT_DICT,
)
from torch.export import ExportedProgram

_STATIC = "static size"
_BF16 = "bf16 needs the extension `bf16`"

OPERATORS = (
    Operator(
        "aten.roll",
        (*FLOAT, "int32", "bool"),
        (VGF,),
        f"{_STATIC}; {_BF16}",
        RewriteRotationPass,
    ),
    Operator("aten.roll", QUANTIZED, TARGETS, _STATIC, DecomposeRollPass),
    *(
        Operator(op, QUANTIZED, (VGF, U85), _STATIC, DecomposeTrianglePass)
        for op in ("aten.triu", "aten.tril")
    ),
)


def needs(installed: fix.Installed) -> fix.Need:
    del installed
    if (torch.ops.aten.roll.default,) in TOSA_QUANTIZER_SUPPORT_DICT:
        return fix.already_fixed("the quantizer annotates roll")
    return fix.apply()


def install(patcher: Patcher) -> None:
    run_before_annotation(patcher, lambda: DecomposeRollPass(tfa_pass=True))
    run_before_annotation(patcher, lambda: DecomposeTrianglePass(tfa_pass=True))
    rewrite_before_partition(patcher, is_index_select, _rewrite)


def _rewrite(program: ExportedProgram, why_not: WhyNot) -> bool:
    constants = ProgramConstants(program, "rotation")
    return run_pass(RewriteRotationPass(why_not, constants), program)
