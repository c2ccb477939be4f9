# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Functions of executorch that several fixes wrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arm_ext.patcher import Patcher

_Wrapper = Callable[[Any, Any, tuple, dict], Any]


def wrap_tag_module(patcher: Patcher, wrapper: _Wrapper) -> None:
    """Wrap what the Arm partitioner does with one module of a program."""
    patcher.wrap(
        "executorch.backends.arm.tosa.partitioner:TOSAPartitioner._tag_module",
        wrapper,
        parameters=(
            "self",
            "module",
            "containing_program",
            "reporter",
            "tag_iterator",
        ),
    )


def wrap_cut(patcher: Patcher, function: str, wrapper: _Wrapper) -> None:
    """Wrap a function of exir's that cuts tagged partitions out of a module."""
    patcher.wrap(
        f"executorch.exir.backend.backend_api:{function}",
        wrapper,
        parameters=(
            "tagged_graph_module",
            "partition_result",
            "owning_program",
            "is_submodule",
        ),
    )
