# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""gather of rank 1 or 4, or along another dimension than the second, is on the CPU.

The gap
    The backend takes ``gather`` along dimension 1 of two or three. Rows of codebooks,
    ``codebooks.gather(2, index)`` with four dimensions, stay on the CPU. A quantized
    constant in front of a gather becomes a float one again, which ends the lowering.
What is done
    Where all other dimensions agree, ``FlattenGatherPass`` views it as one of rank 3,
    before annotation and before partitioning, where an int64 index is then narrowed.
    ``KeepMovedConstantsQuantizedPass`` keeps the qparams of constants.
What is refused
    An index that is smaller than the tensor in another dimension; dynamic shapes.

"""

from __future__ import annotations

from arm_ext.fixes._before_partition import rewrite_before_partition, run_pass, WhyNot
from arm_ext.fixes._passes import insert_passes, run_before_annotation
from arm_ext.operators import FLOAT, Operator, QUANTIZED, U85, VGF
from arm_ext.passes.flatten_gather_pass import FlattenGatherPass, is_other_gather
from arm_ext.passes.keep_moved_constants_quantized_pass import (
    KeepMovedConstantsQuantizedPass,
)
from arm_ext.patcher import Patcher
from executorch.backends.arm._passes import ArmPassManager, FuseConstantArgsPass
from torch.export import ExportedProgram

_LIMITS = "static size; the index as large as the tensor in all other dimensions"

OPERATORS = (
    Operator(
        "aten.gather",
        (*FLOAT, "int32"),
        (VGF,),
        f"{_LIMITS}; bf16 needs the extension `bf16`",
        FlattenGatherPass,
    ),
    Operator("aten.gather", QUANTIZED, (VGF, U85), _LIMITS, FlattenGatherPass),
)


def install(patcher: Patcher) -> None:
    run_before_annotation(patcher, lambda: FlattenGatherPass(lambda node: None))
    # Installed behind int64-arithmetic, it runs in front of it.
    rewrite_before_partition(patcher, is_other_gather, _rewrite)
    insert_passes(patcher, _keep_quantized)


def _keep_quantized(manager: ArmPassManager, program: ExportedProgram) -> None:
    manager.insert_passes_before(
        FuseConstantArgsPass, [KeepMovedConstantsQuantizedPass(program)]
    )


def _rewrite(program: ExportedProgram, why_not: WhyNot) -> bool:
    return run_pass(FlattenGatherPass(why_not), program)
