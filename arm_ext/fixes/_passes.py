# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Run passes of ours in the backend's pipeline, and before annotation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast, Optional

from arm_ext.passes.compute_late_constant_ops_pass import ComputeLateConstantOpsPass
from arm_ext.patcher import Patcher
from executorch.backends.arm._passes import ArmPass, ArmPassManager, InsertTableOpsPass
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

_ARM = "executorch.backends.arm"
GraphPass = Callable[[GraphModule], Optional[PassResult]]


def insert_passes(
    patcher: Patcher, insert: Callable[[ArmPassManager, ExportedProgram], None]
) -> None:
    """Have ``insert`` called where a pipeline of the backend takes insertions.

    Args:
        patcher (Patcher): Wraps the pass manager.
        insert (Callable): Calls ``insert_passes_before`` or ``insert_passes_after`` of
            the manager; is also given the program of the delegate.

    """

    def configure(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> None:
        (program,) = (*args, *kwargs.values())
        insert(instance, program)
        wrapped(*args, **kwargs)

    patcher.wrap(
        f"{_ARM}._passes.arm_pass_manager:ArmPassManager._configure_pass_insertions",
        configure,
        parameters=("self", "exported_program"),
    )


def run_before_annotation(patcher: Patcher, make: Callable[[], GraphPass]) -> None:
    """Have the pass that ``make`` returns run on what a quantizer annotates."""

    def transform(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
        (model,) = (*args, *kwargs.values())
        return wrapped(cast(PassResult, make()(model)).graph_module)

    patcher.wrap(
        f"{_ARM}.quantizer.arm_quantizer:TOSAQuantizer.transform_for_annotation",
        transform,
        parameters=("self", "model"),
    )


def insert_behind_tables(
    manager: ArmPassManager, program: ExportedProgram, decompose: ArmPass
) -> None:
    """Insert a decomposition where each quantized value has its integer dtype.

    So it is only behind the TABLEs; the constants that it adds are then folded.

    """
    manager.insert_passes_after(
        InsertTableOpsPass, [decompose, ComputeLateConstantOpsPass(program)]
    )
