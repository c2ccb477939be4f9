# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Warn of what ``partition()`` did, without changing it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from arm_ext.patcher import Patcher
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from torch.export import ExportedProgram

logger = logging.getLogger("arm_ext")


class _Everything(set):
    def __contains__(self, item: object) -> bool:
        return True


_said: ContextVar[set[str] | None] = ContextVar("arm_ext_said", default=None)


@contextmanager
def warn_once_each() -> Iterator[None]:
    """Say nothing twice inside the block, which lowers a program several times."""
    said = _said.get()
    token = _said.set(set() if said is None else said)
    try:
        yield
    finally:
        _said.reset(token)


@contextmanager
def warn_of_nothing() -> Iterator[None]:
    """Say nothing inside the block, which lowers a part of a program."""
    token = _said.set(_Everything())
    try:
        yield
    finally:
        _said.reset(token)


def warn(message: str, stacklevel: int = 2) -> None:
    """Warn through ``warnings`` and the logger."""
    said = _said.get()
    if said is not None:
        if message in said:
            return
        said.add(message)
    logger.warning("%s", message)
    warnings.warn(message, stacklevel=stacklevel + 1)


def warn_after_partition(
    patcher: Patcher, find: Callable[[TOSAPartitioner, ExportedProgram], object | None]
) -> None:
    """Warn once a call of ``partition()``.

    Args:
        patcher (Patcher): Wraps ``partition()``.
        find (Callable): Is given the partitioner and the tagged program; what it
            returns is the warning as ``str``, None for no warning.

    """

    def partition(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
        result = wrapped(*args, **kwargs)
        found = find(instance, result.tagged_exported_program)
        if found is not None:
            warn(str(found), stacklevel=3)
        return result

    patcher.wrap(
        "executorch.backends.arm.tosa.partitioner:TOSAPartitioner.partition",
        partition,
        parameters=("self", "exported_program"),
    )
