# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Warn of what ``partition()`` did, without changing it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

from arm_ext.patcher import Patcher
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from torch.export import ExportedProgram

logger = logging.getLogger("arm_ext")


def warn_after_partition(
    patcher: Patcher, find: Callable[[TOSAPartitioner, ExportedProgram], object | None]
) -> None:
    """Warn once a call of ``partition()``, through ``warnings`` and the logger.

    Args:
        patcher (Patcher): Wraps ``partition()``.
        find (Callable): Is given the partitioner and the tagged program; what it
            returns is the warning as ``str``, None for no warning.

    """

    def partition(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
        result = wrapped(*args, **kwargs)
        found = find(instance, result.tagged_exported_program)
        if found is not None:
            logger.warning("%s", found)
            warnings.warn(str(found), stacklevel=3)
        return result

    patcher.wrap(
        "executorch.backends.arm.tosa.partitioner:TOSAPartitioner.partition",
        partition,
        parameters=("self", "exported_program"),
    )
