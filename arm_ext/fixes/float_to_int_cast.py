# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A cast from a float to int8 or int16 rounds, where PyTorch drops the fraction.

The gap
    TOSA's CAST rounds to the nearest. The backend sees to fp32 to int32 alone:
    ``x.to(torch.int8)``, to int16, and from fp16 or bf16 to any integer are accepted
    and give -2 for -1.5, in silence.
What is done
    ``TruncateFloatCastPass`` in the backend's pipeline rounds towards zero first.
What is refused
    Nothing that stock takes. A value beyond the integer's range saturates; in PyTorch
    it is undefined.

"""

from __future__ import annotations

from arm_ext.fixes._passes import insert_passes
from arm_ext.operators import FLOAT, Operator, VGF
from arm_ext.passes.truncate_float_cast_pass import TruncateFloatCastPass
from arm_ext.patcher import Patcher
from executorch.backends.arm._passes import (
    ArmPassManager,
    DecorateFp32toInt32CastingPass,
)
from torch.export import ExportedProgram

OPERATORS = (
    Operator(
        "aten._to_copy",
        FLOAT,
        (VGF,),
        "to int8, int16 or int32, with the INT profile; a value beyond its range "
        "saturates; bf16 needs the extension `bf16`",
        TruncateFloatCastPass,
    ),
)


def install(patcher: Patcher) -> None:
    insert_passes(patcher, _insert_truncate)


def _insert_truncate(manager: ArmPassManager, program: ExportedProgram) -> None:
    del program
    manager.insert_passes_before(
        DecorateFp32toInt32CastingPass, [TruncateFloatCastPass()]
    )
