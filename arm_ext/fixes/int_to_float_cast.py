# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""An integer that becomes a float in a quantized model splits the graph.

The gap
    Positions, counts, masks and images come as integers and bools, and ``x.float()``
    brings them into what is quantized. An integer target has no cast to float: it is
    on the CPU, with a quantize behind it, and what makes the integer is in a
    delegate of its own. ``step * frequencies`` of an integer and a float is not
    quantized at all.
What is done
    Before partitioning ``DequantizeIntCastPass`` reads the integer as a quantized
    value of scale 1. The backend makes a RESCALE of that and the quantize: the same
    numbers, or the next code where the integer is right between two. Before
    annotation ``CastIntOperandsPass`` writes out the cast of such an operand.
What is refused
    An int64 that is not narrowed; an integer that is no float of a quantized op; one
    that may be larger than a RESCALE takes, some 2**29 steps of the quantize.

"""

from __future__ import annotations

import torch
from arm_ext.fixes._before_partition import rewrite_before_partition, run_pass, WhyNot
from arm_ext.fixes._passes import run_before_annotation
from arm_ext.operators import Operator, QUANTIZED, TARGETS, U85, VGF
from arm_ext.passes.cast_int_operands_pass import CastIntOperandsPass
from arm_ext.passes.dequantize_int_cast_pass import DequantizeIntCastPass
from arm_ext.passes.index_sources import is_cast
from arm_ext.passes.program_constants import ProgramConstants
from arm_ext.patcher import Patcher
from torch.export import ExportedProgram
from torch.fx import Node

OPERATORS = (
    Operator(
        "aten._to_copy",
        ("int32", "int16", "bool"),
        (VGF, U85),
        "to float32 where that is quantized; an integer below 2**29 steps of it",
        DequantizeIntCastPass,
    ),
    *(
        Operator(
            f"aten.{op.overloadpacket.__name__}",
            QUANTIZED,
            TARGETS,
            "of an integer and a float, that of the cast",
            CastIntOperandsPass,
        )
        for op in CastIntOperandsPass.target_ops
    ),
)


def install(patcher: Patcher) -> None:
    # Annotate: installed behind float64-and-constants, it runs in front of it, so that
    # constants are folded in float.
    run_before_annotation(patcher, lambda: CastIntOperandsPass(tfa_pass=True))
    # Lower: installed in front of int64-arithmetic, it runs behind it.
    rewrite_before_partition(patcher, _is_cast_to_float, _rewrite)


def _is_cast_to_float(node: Node) -> bool:
    return is_cast(node, torch.float32)


def _rewrite(program: ExportedProgram, why_not: WhyNot) -> bool:
    constants = ProgramConstants(program, "int_cast_constant")
    return run_pass(DequantizeIntCastPass(why_not, constants), program)
