# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Lower whole models to Arm's VGF and Ethos-U backends.

``import arm_ext`` patches the installed executorch; ``arm_ext.status()`` says
what was changed and why, ``arm_ext.revert()`` takes all of it back.

Environment variables, read once at import:
    ARM_EXT: ``0`` leaves executorch alone.
    ARM_EXT_DISABLE: Comma-separated names of fixes to leave out.
    ARM_EXT_STRICT: ``1`` raises where a lowering would go on with nodes that cannot be
        lowered left on the CPU, as ``apply(strict=True)`` does.

"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, TYPE_CHECKING

from arm_ext._engine import apply, check_names, patched, revert, Row, Status, status
from arm_ext.fix import State

if TYPE_CHECKING:
    from arm_ext.reporting import Report

__all__ = [
    "apply",
    "patched",
    "report",
    "revert",
    "Row",
    "State",
    "Status",
    "status",
]


def report(
    model: Any,
    inputs: Sequence[Any] = (),
    *,
    target: Any = "vgf",
    quantize: str | None = None,
    stock: bool = False,
    name: str | None = None,
) -> Report:
    """Lower a model for an Arm target and report what runs where, and why.

    ``arm_ext.reporting.report`` has the details; a test of a model is then
    ``assert arm_ext.report(model, inputs, target="ethos-u85-256").is_whole``.

    """
    from arm_ext.reporting import report as build

    return build(
        model, inputs, target=target, quantize=quantize, stock=stock, name=name
    )


def _apply_from_environment() -> None:
    if os.environ.get("ARM_EXT") == "0":
        return
    names = os.environ.get("ARM_EXT_DISABLE", "").split(",")
    disable = [name.strip() for name in names if name.strip()]
    strict = os.environ.get("ARM_EXT_STRICT") == "1"
    apply(disable=check_names(disable, "ARM_EXT_DISABLE"), strict=strict)


def _is_command() -> bool:
    """Whether this is ``arm-ext``, which loads executorch only where it must."""
    return [os.path.basename(path) for path in sys.argv[:1]] == ["arm-ext"]


if not _is_command():
    _apply_from_environment()
