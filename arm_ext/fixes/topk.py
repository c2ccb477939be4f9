# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""topk, sort, argsort and kthvalue stay on the CPU.

The gap
    These ops are in no list, and their indices are int64, which the partitioner
    rejects.
What is done
    They are annotated as ops that move data: the values share the input's qparams.
    ``DecomposeTopKPass`` in the backend's pipeline lowers them by rounds of ARGMAX
    or by counting ranks, whichever costs less; its docstring has the two and their
    cost. Indices are carried in int32 by what ``argmin-argmax`` does, which this
    needs.
What is refused
    A size that is not known, more than 4,096 elements, an empty result, values that
    are quantized otherwise than the input, a dtype that the specification has no
    ARGMAX for, and Ethos-U55, which has neither GATHER nor SCATTER: these stay on
    the CPU, with the reason in the partitioner's report.

"""

from __future__ import annotations

from typing import Any

from arm_ext import fix
from arm_ext.fixes._passes import insert_behind_tables, insert_passes
from arm_ext.fixes._support import accept_ops, check_first
from arm_ext.operators import FLOAT, Operator, QUANTIZED, U85, VGF
from arm_ext.partitioner.topk_check import TopKCheck
from arm_ext.passes.decompose_topk_pass import DecomposeTopKPass
from arm_ext.passes.index_sources import SELECTION_OPS
from arm_ext.patcher import Patcher
from arm_ext.quantizer.selection import ARGSORTS, SELECTIONS, share_qparams_with_values
from executorch.backends.arm._passes import ArmPassManager
from executorch.backends.arm.operator_support.tosa_profile_supported_op_lists import (
    TOSA_PRO_INT_SupportList,
)
from packaging.version import Version
from torch.export import ExportedProgram

_ARM = "executorch.backends.arm"
_OLDEST = Version("1.5.0")
_LIMITS = "static shape, at most 4096 elements"

OPERATORS = tuple(
    operator
    for op in ("aten.topk", "aten.sort", "aten.argsort", "aten.kthvalue")
    for operator in (
        Operator(
            op,
            (*FLOAT, "int32", "int16"),
            (VGF,),
            f"{_LIMITS}; bf16 needs the extension `bf16`, int16 `int16`",
            DecomposeTopKPass,
        ),
        Operator(op, QUANTIZED, (VGF, U85), _LIMITS, DecomposeTopKPass),
    )
)


def needs(installed: fix.Installed) -> fix.Need:
    if SELECTION_OPS[0] in TOSA_PRO_INT_SupportList:
        return fix.already_fixed("the support lists have topk")
    if installed.executorch < _OLDEST:
        return fix.cannot(f"the backend sums int32 to int64 before {_OLDEST}")
    return fix.apply()


def install(patcher: Patcher) -> None:
    # Annotate.
    patcher.extend(
        f"{_ARM}.quantizer.quantizer_support:TOSA_QUANTIZER_SUPPORT_DICT",
        {(op,): None for op in (*SELECTIONS, *ARGSORTS)},
    )
    patcher.wrap(
        f"{_ARM}.quantizer.arm_quantizer_utils:PatternQuantizer.annotate_match",
        _annotate_values,
        parameters=("self", "match", "config"),
    )
    # Accept.
    accept_ops(patcher, SELECTION_OPS)
    check_first(patcher, lambda spec, program, reporter: TopKCheck(spec, reporter))
    # Lower.
    insert_passes(patcher, _insert_decompose)


def _annotate_values(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> None:
    wrapped(*args, **kwargs)
    share_qparams_with_values(args[0] if args else kwargs["match"])


def _insert_decompose(manager: ArmPassManager, program: ExportedProgram) -> None:
    insert_behind_tables(manager, program, DecomposeTopKPass())
