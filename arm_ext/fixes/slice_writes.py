# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A tensor that is filled in slices: on the CPU, and quantized wrong.

The gap
    ``y = torch.empty_like(x); y[..., :n] = a; y[..., n:] = b`` is how rotary
    embeddings are written. In float, the uninitialised tensor is an
    ``empty_permuted`` on the CPU, once for each. In a quantized model the numbers are
    wrong in silence: the observer scales by what was in the memory, and since Q/DQ
    come between a tensor and its slices, ``copy_`` writes a slice of a copy.
What is done
    Before annotation ``FunctionalizeSliceWritesPass`` makes each write a
    ``slice_scatter`` or ``select_scatter``. There, and before partitioning,
    ``FillUninitializedPass`` makes uninitialised memory a constant zero.
What is refused
    A tensor that another view shows to somebody after the write, or that is an input
    of the model, is left as it is; so is uninitialised memory of another layout than
    the dense one, or of a dynamic size.

"""

from __future__ import annotations

from arm_ext import fix
from arm_ext.fixes._before_partition import rewrite_before_partition, run_pass, WhyNot
from arm_ext.fixes._passes import run_before_annotation
from arm_ext.operators import FLOAT, Operator, TARGETS, VGF
from arm_ext.passes.fill_uninitialized_pass import (
    FillUninitializedPass,
    is_uninitialized,
)
from arm_ext.passes.functionalize_slice_writes_pass import FunctionalizeSliceWritesPass
from arm_ext.patcher import Patcher
from executorch.backends.arm.operator_support.tosa_profile_supported_op_lists import (
    TOSA_PRO_FP_SupportList,
)
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import ExportedProgram

OPERATORS = (
    Operator(
        "aten.empty",
        (*FLOAT, "int32", "bool"),
        (VGF,),
        "dense and of static size; bf16 needs the extension `bf16`",
        FillUninitializedPass,
    ),
    Operator(
        "aten.copy_",
        ("int8", "int16"),
        TARGETS,
        "into slices of a tensor that no other view shows",
        FunctionalizeSliceWritesPass,
    ),
)


def needs(installed: fix.Installed) -> fix.Need:
    del installed
    if exir_ops.edge.aten.empty_permuted.default in TOSA_PRO_FP_SupportList:
        return fix.already_fixed("the support lists have empty_permuted")
    return fix.apply()


def install(patcher: Patcher) -> None:
    # Annotate: what is wrapped last runs first.
    run_before_annotation(patcher, lambda: FillUninitializedPass(lambda node: None))
    run_before_annotation(patcher, lambda: FunctionalizeSliceWritesPass(tfa_pass=True))
    # Lower.
    rewrite_before_partition(patcher, is_uninitialized, _rewrite)


def _rewrite(program: ExportedProgram, why_not: WhyNot) -> bool:
    return run_pass(FillUninitializedPass(why_not), program)
