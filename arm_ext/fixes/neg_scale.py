# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A quantized neg whose input and output differ in scale gives wrong numbers.

The gap
    TOSA's NEGATE knows zero points and no scale, and the backend emits nothing else.
    The quantizer gives neg the qparams of its input, but where a cat or a comparison
    reads the same input they come out different: ``-x, cat([x, y])`` gives ``-x``
    times the ratio of two scales, in silence.
What is done
    ``RescaleNegatePass`` in the backend's pipeline inserts a RESCALE there.
What is refused
    Nothing. A neg with one scale is left as it is.

"""

from __future__ import annotations

from arm_ext.fixes._passes import insert_passes
from arm_ext.operators import Operator, QUANTIZED, TARGETS
from arm_ext.passes.rescale_negate_pass import RescaleNegatePass
from arm_ext.patcher import Patcher
from executorch.backends.arm._passes import ArmPassManager, InsertRescaleInt32Pass
from torch.export import ExportedProgram

OPERATORS = (Operator("aten.neg", QUANTIZED, TARGETS, "none", RescaleNegatePass),)


def install(patcher: Patcher) -> None:
    insert_passes(patcher, _insert)


def _insert(manager: ArmPassManager, program: ExportedProgram) -> None:
    del program
    manager.insert_passes_before(InsertRescaleInt32Pass, [RescaleNegatePass()])
