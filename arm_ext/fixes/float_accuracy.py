# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""asinh, log1p, log_softmax and round of floats give wrong numbers.

The gap
    ``log1p(-0.9)`` is -1.92 instead of -2.30: six terms of a Taylor series serve for
    all negative arguments. ``asinh(-5000)`` is minus infinity, as is ``log_softmax``
    of what is 104 below the largest (17 in fp16), and ``round(0.5)`` is 1. All are
    accepted in silence.
What is done
    One pass for each in the backend's pipeline takes a formula that neither cancels
    nor underflows, before the backend's own pass sees the op. ``round`` is exact, the
    others are within some last digits.
What is refused
    Nothing that stock takes. Quantized ops are TABLEs and are right.

"""

from __future__ import annotations

from collections.abc import Callable

from arm_ext.fixes._passes import insert_passes
from arm_ext.operators import FLOAT, Operator, VGF
from arm_ext.passes.decompose_log1p_of_any_pass import DecomposeLog1pOfAnyPass
from arm_ext.passes.decompose_log_softmax_pass import DecomposeLogSoftmaxPass
from arm_ext.passes.decompose_odd_asinh_pass import DecomposeOddAsinhPass
from arm_ext.passes.decompose_round_to_even_pass import DecomposeRoundToEvenPass
from arm_ext.patcher import Patcher
from executorch.backends.arm._passes import (
    ArmPassManager,
    DecomposeAsinhPass,
    DecomposeLog1pPass,
    DecomposeQuantNodesPass,
    DecomposeSoftmaxPass,
)
from executorch.exir.pass_base import ExportPass
from torch.export import ExportedProgram

# The backend's pass for an op, and the one that is run before it. That for round comes
# before a quantize that stays in float is made a round: halves are within its step.
_BETTER: dict[type[ExportPass], Callable[[], ExportPass]] = {
    DecomposeAsinhPass: DecomposeOddAsinhPass,
    DecomposeLog1pPass: DecomposeLog1pOfAnyPass,
    DecomposeQuantNodesPass: DecomposeRoundToEvenPass,
    DecomposeSoftmaxPass: DecomposeLogSoftmaxPass,
}

_BF16 = "bf16 needs the extension `bf16` in the TOSA specification"
OPERATORS = (
    Operator("aten.asinh", FLOAT, (VGF,), _BF16, DecomposeOddAsinhPass),
    Operator("aten.log1p", FLOAT, (VGF,), _BF16, DecomposeLog1pOfAnyPass),
    Operator("aten.log_softmax", FLOAT, (VGF,), _BF16, DecomposeLogSoftmaxPass),
    Operator("aten.round", FLOAT, (VGF,), _BF16, DecomposeRoundToEvenPass),
)


def install(patcher: Patcher) -> None:
    insert_passes(patcher, _insert)


def _insert(manager: ArmPassManager, program: ExportedProgram) -> None:
    del program
    for theirs, ours in _BETTER.items():
        manager.insert_passes_before(theirs, [ours()])
