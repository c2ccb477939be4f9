# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""argmin, and most of argmax, stay on the CPU.

The gap
    ``argmin`` is in no list. ``argmax`` is not annotated by the quantizer, so on
    Ethos-U its input is a float; with ``dim=None``, with ``keepdim``, of int32, or
    where its index is used as the int64 that it is in PyTorch, it is rejected too.
    So are ``max`` and ``min`` along a dimension whose index is read, which quantizing
    even stops at.
    On Ethos-U55 an accepted one can stop the whole lowering in Vela.
What is done
    Both are annotated with a quantized input, and ``DecomposeArgMinMaxPass`` in
    the backend's pipeline brings both to TOSA's ARGMAX, exact, ties and NaN as in
    ATen. ``SplitMaxMinPass`` makes a reduction and one of them of ``max`` and
    ``min``. Before partitioning, ``NarrowIndexPass`` carries the index in int32: ops
    that read an index in the same delegate read the int32, and one cast outside the
    delegate gives the int64 that a graph output has.
What is refused
    A dimension of unknown size, a dtype that TOSA has no ARGMAX for, an op inside
    control flow that uses the int64, and on Ethos-U55 all but int8, the last
    dimension, 127 elements and 65536 results: these stay on the CPU, with the
    reason in the partitioner's report.

"""

from __future__ import annotations

from typing import Any

import torch
from arm_ext import fix
from arm_ext.fixes._before_partition import rewrite_before_partition, run_pass, WhyNot
from arm_ext.fixes._passes import (
    insert_behind_tables,
    insert_passes,
    run_before_annotation,
)
from arm_ext.fixes._support import accept_ops, check_first, check_last
from arm_ext.operators import FLOAT, Operator, QUANTIZED, U55, U85, VGF
from arm_ext.partitioner.arg_min_max_check import ArgMinMaxCheck
from arm_ext.partitioner.narrowed_index import (
    is_int32_inside,
    NarrowedIndexCheck,
    WideningCheck,
)
from arm_ext.passes.decompose_arg_min_max_pass import DecomposeArgMinMaxPass
from arm_ext.passes.index_sources import index_source
from arm_ext.passes.narrow_index_pass import NarrowIndexPass
from arm_ext.passes.program_constants import ProgramConstants
from arm_ext.passes.split_max_min_pass import has_index, SplitMaxMinPass
from arm_ext.patcher import Patcher
from executorch.backends.arm._passes import ArmPassManager
from executorch.backends.arm.operator_support.tosa_profile_supported_op_lists import (
    TOSA_PRO_INT_SupportList,
)
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import ExportedProgram
from torch.fx import Node

_ARM = "executorch.backends.arm"
_SUPPORT = f"{_ARM}.operator_support"
_ARGMIN = exir_ops.edge.aten.argmin.default

OPERATORS = tuple(
    operator
    for op in ("aten.argmax", "aten.argmin", "aten.max", "aten.min")
    for operator in (
        Operator(
            op,
            (*FLOAT, "int32", "int16"),
            (VGF,),
            "static size; bf16 needs the extension `bf16`, int16 `int16`",
            DecomposeArgMinMaxPass,
        ),
        Operator(op, QUANTIZED, (VGF, U85), "static size", DecomposeArgMinMaxPass),
        Operator(
            op,
            ("int8",),
            (U55,),
            "last dimension, 127 elements, 65536 results",
            DecomposeArgMinMaxPass,
        ),
    )
)


def needs(installed: fix.Installed) -> fix.Need:
    del installed
    if _ARGMIN in TOSA_PRO_INT_SupportList:
        return fix.already_fixed("the support lists have argmin")
    return fix.apply()


def install(patcher: Patcher) -> None:
    # Annotate.
    patcher.extend(
        f"{_ARM}.quantizer.quantizer_support:TOSA_QUANTIZER_SUPPORT_DICT",
        {
            (torch.ops.aten.argmax.default,): None,
            (torch.ops.aten.argmin.default,): None,
        },
    )
    run_before_annotation(patcher, lambda: SplitMaxMinPass(tfa_pass=True))
    # Accept.
    accept_ops(patcher, (_ARGMIN,))
    check_first(patcher, lambda spec, program, reporter: WideningCheck(reporter))
    check_first(patcher, lambda spec, program, reporter: ArgMinMaxCheck(spec, reporter))
    patcher.wrap(
        f"{_SUPPORT}.tosa_supported_operators:"
        "CheckInt64InputsAndOutputs.is_node_supported",
        _accept_int32_inside,
        parameters=("self", "submodules", "node"),
    )
    check_last(
        patcher,
        lambda partitioner, program, reporter, accepts: NarrowedIndexCheck(
            reporter, accepts
        ),
    )
    # Lower.
    rewrite_before_partition(patcher, _computes_an_index, _narrow)
    insert_passes(patcher, _insert_decompose)


def _accept_int32_inside(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> bool:
    (node,) = (*args, *kwargs.values())[-1:]
    return is_int32_inside(node) or wrapped(*args, **kwargs)


def _computes_an_index(node: Node) -> bool:
    return index_source(node) is not None or has_index(node)


def _narrow(program: ExportedProgram, why_not: WhyNot) -> bool:
    split = run_pass(SplitMaxMinPass(why_not), program)
    constants = ProgramConstants(program, "int32_constant")
    narrow = NarrowIndexPass(why_not, constants)
    return run_pass(narrow, program) or split


def _insert_decompose(manager: ArmPassManager, program: ExportedProgram) -> None:
    insert_behind_tables(manager, program, DecomposeArgMinMaxPass())
