# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Mish stays in float on the CPU.

The gap
    Mish is in no list of the quantizer, of the ops kept whole, of the TABLE ops or
    of the profiles' support lists. It is decomposed into softplus, tanh and mul: in
    a quantized graph float ops on the CPU between two delegates, in a float one some
    24 ops that return 0 for x <= -20, where TOSA TANH underflows.
What is done
    Mish is treated as SiLU is. Quantized, it is annotated one to one, kept whole
    and lowered to a TABLE. In float it is kept whole too, and ``DecomposeMishPass``
    in the backend's pipeline computes it exact to a few ulp in 8 ops.
What is refused
    Nothing that SiLU is not: float64, rank above 6, and bf16 without the extension
    stay on the CPU, decomposed. So does mish in a program that came through
    ``to_edge`` and ``to_backend``, which decompose it before they ask.

"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from arm_ext import fix
from arm_ext.fixes._passes import insert_passes
from arm_ext.fixes._support import accept_ops
from arm_ext.operators import FLOAT, Operator, QUANTIZED, TARGETS, VGF
from arm_ext.partitioner.preserved import KeepWhatIsTaken
from arm_ext.passes.decompose_mish_pass import DecomposeMishPass
from arm_ext.patcher import Patcher
from executorch.backends.arm._passes import (
    ArmPassManager,
    DecomposeGeluPass,
    InsertTableOpsPass,
)
from executorch.backends.arm.operator_support.ethos_u55_support import (
    EthosU55DtypeSupport,
)
from executorch.backends.arm.operator_support.tosa_supported_operators import (
    CheckProperQuantization,
)
from executorch.backends.arm.quantizer.quantizer_support import (
    TOSA_QUANTIZER_SUPPORT_DICT,
)
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import ExportedProgram
from torch.fx import Node

OPERATORS = (
    Operator(
        "aten.mish",
        FLOAT,
        (VGF,),
        "bf16 needs the extension `bf16` in the TOSA specification",
        DecomposeMishPass,
    ),
    Operator("aten.mish", QUANTIZED, TARGETS, "none", InsertTableOpsPass),
)

_ARM = "executorch.backends.arm"
_SUPPORT = f"{_ARM}.operator_support"

_MISH = torch.ops.aten.mish.default
_MISH_ = torch.ops.aten.mish_.default
_EDGE_MISH = exir_ops.edge.aten.mish.default


def _keep_mish(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    ops, kept = wrapped(*args, **kwargs)
    (program,) = (*args, *kwargs.values())
    keep_mish = KeepWhatIsTaken(
        program,
        instance.tosa_spec,
        support=lambda reporter: instance._create_operator_support(program, reporter),
        kept=lambda node: node.target == _MISH,
        candidates={_MISH},
    )
    return [*ops, _MISH], _either(kept, keep_mish)


def _either(
    first: Callable[[Node], bool] | None, second: Callable[[Node], bool]
) -> Callable[[Node], bool]:
    return lambda node: (first is not None and first(node)) or second(node)


def _insert_decompose_mish(manager: ArmPassManager, program: ExportedProgram) -> None:
    manager.insert_passes_before(DecomposeGeluPass, [DecomposeMishPass()])


def needs(installed: fix.Installed) -> fix.Need:
    del installed
    if (_MISH,) in TOSA_QUANTIZER_SUPPORT_DICT:
        return fix.already_fixed("the quantizer annotates mish")
    return fix.apply()


def install(patcher: Patcher) -> None:
    # Annotate.
    patcher.extend(
        f"{_ARM}.quantizer.quantizer_support:TOSA_QUANTIZER_SUPPORT_DICT",
        {(_MISH,): None, (_MISH_,): None},
    )
    patcher.extend(
        f"{_ARM}.quantizer.quantization_annotator:_one_to_one", (_MISH, _MISH_)
    )
    # Keep whole and accept.
    patcher.wrap(
        f"{_ARM}.tosa.partitioner:TOSAPartitioner.ops_to_not_decompose",
        _keep_mish,
        parameters=("self", "ep"),
    )
    accept_ops(patcher, (_EDGE_MISH,))
    patcher.set(
        f"{_SUPPORT}.tosa_supported_operators:CheckProperQuantization.targeted_ops",
        (*CheckProperQuantization.targeted_ops, _EDGE_MISH),
    )
    patcher.set(
        f"{_SUPPORT}.ethos_u55_support:EthosU55DtypeSupport.target_ops_i8_i16",
        (*EthosU55DtypeSupport.target_ops_i8_i16, _EDGE_MISH),
    )
    # Lower.
    patcher.extend(
        f"{_ARM}._passes.insert_table_ops:TableOps.unary_table_ops",
        {_EDGE_MISH: torch.nn.functional.mish},
    )
    insert_passes(patcher, _insert_decompose_mish)
