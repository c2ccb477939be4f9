# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Why an op stays on the CPU is said nowhere.

The gap
    The partitioner knows why it rejects a node, and logs it below the default level;
    it writes a report only if that level was changed, with the first reason alone.
What is done
    Whoever has intermediate artifacts dumped
    (``VgfCompileSpec().dump_intermediate_artifacts_to(folder)``) finds
    ``partition_report.txt`` among them: each op that is left on the CPU with its line
    of the model and all reasons. What is delegated does not change.

"""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any, cast

from arm_ext.fixes._reject_reasons import reasons_of, reject_reasons
from arm_ext.partitioner.reject_report import reject_report
from arm_ext.patcher import Patcher
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from torch.export import ExportedProgram

_FILE = "partition_report.txt"
# A partitioner of several methods adds each one's report to the first.
_reported: weakref.WeakSet[TOSAPartitioner] = weakref.WeakSet()


def install(patcher: Patcher) -> None:
    patcher.wrap(
        "executorch.backends.arm.tosa.partitioner:TOSAPartitioner.partition",
        _partition,
        parameters=("self", "exported_program"),
    )


def _partition(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    if instance.intermediate_path is None:
        return wrapped(*args, **kwargs)
    with reject_reasons():
        result = wrapped(*args, **kwargs)
    _write(instance, result.tagged_exported_program)
    return result


def _write(partitioner: TOSAPartitioner, program: ExportedProgram) -> None:
    target = f"{partitioner.delegation_spec.backend_id}, {partitioner.tosa_spec}"
    folder = Path(cast(str, partitioner.intermediate_path))
    folder.mkdir(parents=True, exist_ok=True)
    mode = "a" if partitioner in _reported else "w"
    with open(folder / _FILE, mode, encoding="utf-8") as file:
        file.write(reject_report(program, target, reasons_of) + "\n\n")
    _reported.add(partitioner)
