# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""isnan, isinf and fmod stay on the CPU.

The gap
    The three are in no list: a guard against NaN, or an angle that is wrapped,
    splits the graph.
What is done
    ``DecomposeIsNanIsInfPass`` and ``DecomposeFmodPass`` in the backend's pipeline
    bring them to TOSA, exact in every bit. An int8 ``fmod`` is annotated one to one
    and becomes a TABLE, as ``remainder`` does. Before partitioning,
    ``NormalizeIsNanIsInfFmodPass`` makes a scalar of a constant divisor, and False of a
    test of a dequantized value, which is finite.
What is refused
    A divisor that is computed at run time: an exact remainder takes a step for each
    12 bits of the quotient, which has no bound then, and an integer divisor may be 0,
    which is an error in eager. A float divisor below 2^-32, infinite or NaN; a
    16-bit quantized ``fmod``, whose TABLE interpolates over its jumps; integers
    other than int32.

"""

from __future__ import annotations

from typing import Any

import torch
from arm_ext import fix
from arm_ext.fixes._before_partition import rewrite_before_partition, run_pass, WhyNot
from arm_ext.fixes._passes import insert_passes
from arm_ext.fixes._support import accept_ops, check_first
from arm_ext.operators import FLOAT, Operator, TARGETS, VGF
from arm_ext.partitioner.isnan_isinf_fmod_check import IsNanIsInfFmodCheck
from arm_ext.passes.constant_evaluator import (
    ConstantEvaluator,
    NotConstant,
    program_constant,
)
from arm_ext.passes.decompose_fmod_pass import DecomposeFmodPass, FMOD
from arm_ext.passes.decompose_isnan_isinf_pass import (
    DecomposeIsNanIsInfPass,
    ISINF,
    ISNAN,
)
from arm_ext.passes.normalize_isnan_isinf_fmod_pass import (
    is_fmod_by_tensor,
    is_test_of_finite,
    NormalizeIsNanIsInfFmodPass,
)
from arm_ext.patcher import Patcher
from arm_ext.quantizer.fmod import Int8Activations
from executorch.backends.arm._passes import (
    ArmPassManager,
    DecomposeGeluPass,
    InsertTableOpsPass,
)
from executorch.backends.arm.operator_support.ethos_u55_support import (
    EthosU55DtypeSupport,
)
from executorch.backends.arm.operator_support.tosa_profile_supported_op_lists import (
    TOSA_PRO_FP_SupportList,
)
from executorch.backends.arm.operator_support.tosa_supported_operators import (
    CheckProperQuantization,
)
from executorch.exir.pass_base import ExportPass
from torch.export import ExportedProgram
from torch.fx import Node

_ARM = "executorch.backends.arm"
_SUPPORT = f"{_ARM}.operator_support"

_ATEN_FMOD = torch.ops.aten.fmod.Scalar
_BF16 = "bf16 needs the extension `bf16` in the TOSA specification"
_DIVISOR = "constant divisor"

OPERATORS = (
    Operator("aten.isnan", FLOAT, (VGF,), _BF16, DecomposeIsNanIsInfPass),
    Operator("aten.isinf", FLOAT, (VGF,), _BF16, DecomposeIsNanIsInfPass),
    Operator(
        "aten.fmod",
        FLOAT,
        (VGF,),
        f"{_DIVISOR} from 2^-32; {_BF16}",
        DecomposeFmodPass,
    ),
    Operator("aten.fmod", ("int32",), TARGETS[:2], _DIVISOR, DecomposeFmodPass),
    Operator("aten.fmod", ("int8",), TARGETS, _DIVISOR, InsertTableOpsPass),
)


def needs(installed: fix.Installed) -> fix.Need:
    del installed
    if ISNAN in TOSA_PRO_FP_SupportList:
        return fix.already_fixed("the support lists have isnan")
    return fix.apply()


def install(patcher: Patcher) -> None:
    # Annotate.
    patcher.extend(
        f"{_ARM}.quantizer.quantizer_support:TOSA_QUANTIZER_SUPPORT_DICT",
        {(_ATEN_FMOD,): Int8Activations},
    )
    patcher.extend(
        f"{_ARM}.quantizer.quantization_annotator:_one_to_one", (_ATEN_FMOD,)
    )
    # Accept.
    accept_ops(patcher, (ISNAN, ISINF, FMOD))
    check_first(
        patcher, lambda spec, program, reporter: IsNanIsInfFmodCheck(spec, reporter)
    )
    patcher.set(
        f"{_SUPPORT}.tosa_supported_operators:CheckProperQuantization.targeted_ops",
        (*CheckProperQuantization.targeted_ops, FMOD),
    )
    patcher.set(
        f"{_SUPPORT}.ethos_u55_support:EthosU55DtypeSupport.target_ops_i8_i16",
        (*EthosU55DtypeSupport.target_ops_i8_i16, FMOD),
    )
    # Lower.
    rewrite_before_partition(patcher, _is_normalized, _normalize)
    patcher.extend(
        f"{_ARM}._passes.insert_table_ops:TableOps.special_table_ops", (FMOD,)
    )
    patcher.wrap(
        f"{_ARM}._passes.insert_table_ops:TableOps.__getitem__",
        _table_of_fmod,
        parameters=("self", "node"),
    )
    insert_passes(patcher, _insert_decompose)


def _is_normalized(node: Node) -> bool:
    return is_fmod_by_tensor(node) or is_test_of_finite(node)


def _normalize(program: ExportedProgram, why_not: WhyNot) -> bool:
    del why_not
    constants = ConstantEvaluator(lambda node: program_constant(program, node))

    def constant(node: Node) -> torch.Tensor | None:
        try:
            return constants.value(node)
        except NotConstant:
            return None

    return run_pass(NormalizeIsNanIsInfFmodPass(constant), program)


def _table_of_fmod(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    (node,) = (*args, *kwargs.values())
    if node.target != FMOD:
        return wrapped(node)
    divisor = node.args[1]
    return lambda x: torch.fmod(x, divisor).flatten()


def _insert_decompose(manager: ArmPassManager, program: ExportedProgram) -> None:
    passes: list[ExportPass] = [DecomposeIsNanIsInfPass(), DecomposeFmodPass()]
    manager.insert_passes_before(DecomposeGeluPass, passes)
