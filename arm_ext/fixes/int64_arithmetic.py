# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""int64 arithmetic stays on the CPU, and all that is computed from it.

The gap
    TOSA has no int64. PyTorch makes int64 of indices, positions, counts and token
    ids, so ``argmax(-1) % 7``, a mask from ``arange`` or ``cumsum`` and an embedding of
    either stay on the CPU.
What is done
    Before partitioning, ``NarrowInt64Pass`` bounds the values of all integers and
    computes in int32 what is the same there, with one cast where an int64 is seen
    from outside. ``CastInt64BeforeMovesPass`` casts what stays int64 before it is
    viewed, so that the cast alone is on the CPU. ``DecomposeIntCumsumPass`` in the
    backend's pipeline makes additions of an integer ``cumsum``, which stock makes a
    convolution that TOSA does not have.
What is refused
    Values that may leave int32, on the way to the result too; a divisor that may be
    zero; ops that the target has not on int32; islands that would cost more casts
    than they move ops: these stay int64, with the reason in the partitioner's
    report. An int64 input is narrowed only if the program reads it as an index.

"""

from __future__ import annotations

import torch
from arm_ext.fixes._before_partition import rewrite_before_partition, run_pass, WhyNot
from arm_ext.fixes._passes import insert_passes
from arm_ext.fixes._support import check_first
from arm_ext.operators import Operator, U85, VGF
from arm_ext.partitioner.int64_check import Int64Check
from arm_ext.passes.cast_int64_before_moves_pass import CastInt64BeforeMovesPass
from arm_ext.passes.decompose_int_cumsum_pass import DecomposeIntCumsumPass
from arm_ext.passes.fold_constants_pass import FoldConstantsPass
from arm_ext.passes.int32_forms import names_of_arithmetic
from arm_ext.passes.narrow_int64_pass import NarrowInt64Pass
from arm_ext.passes.program_constants import ProgramConstants
from arm_ext.patcher import Patcher
from executorch.backends.arm._passes import ArmPassManager
from executorch.backends.arm._passes.decompose_cumsum_pass import DecomposeCumsumPass
from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils._pytree import tree_leaves

OPERATORS = (
    *(
        Operator(
            op,
            ("int64",),
            (VGF, U85),
            "values, on the way to the result too, that provably fit int32",
            NarrowInt64Pass,
        )
        for op in names_of_arithmetic()
    ),
    Operator("aten.cumsum", ("int32",), (VGF, U85), "none", DecomposeIntCumsumPass),
)


def install(patcher: Patcher) -> None:
    # Accept.
    check_first(patcher, lambda spec, program, reporter: Int64Check(spec, reporter))
    # Lower.
    rewrite_before_partition(patcher, _is_int64, _narrow)
    insert_passes(patcher, _insert_decompose)


def _is_int64(node: Node) -> bool:
    return any(
        isinstance(value, torch.Tensor) and value.dtype == torch.int64
        for value in tree_leaves(node.meta.get("val"))
    )


def _narrow(program: ExportedProgram, why_not: WhyNot) -> bool:
    constants = ProgramConstants(program, "int32_constant")
    changes = FoldConstantsPass, NarrowInt64Pass, CastInt64BeforeMovesPass
    modified = [run_pass(change(why_not, constants), program) for change in changes]
    return any(modified)


def _insert_decompose(manager: ArmPassManager, program: ExportedProgram) -> None:
    manager.insert_passes_before(DecomposeCumsumPass, [DecomposeIntCumsumPass()])
