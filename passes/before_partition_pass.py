# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from executorch.backends.arm._passes import ArmPass
from executorch.exir.pass_base import ExportPass
from torch.fx import Node

from .module_constants import ModuleConstants
from .program_constants import ProgramConstants


class BeforePartitionPass(ArmPass):
    """Base of the passes that rewrite a program into what a partitioner takes.

    They rewrite the top-level graph, and show the partitioner what they made of it.
    They change the program: hand them a copy.

    Args:
        why_not (Callable[[Node], str | None]): Returns why the partitioner does not
            take a node, or None if it does.
        constants (ProgramConstants | ModuleConstants | None): Reads and adds
            constants; None where there are none to be read.

    """

    _passes_required_after: set[type[ExportPass]] = set()

    def __init__(
        self,
        why_not: Callable[[Node], str | None],
        constants: ProgramConstants | ModuleConstants | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._why_not = why_not
        self._constants = constants
