# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""An Ethos-U delegate needs more SRAM than the target has.

The gap: where the arena is in SRAM, Vela takes as much of it as the activations need,
``--arena-cache-size`` or not. That it is too much shows when the device runs out.

What we do: one warning that gives the size. What is lowered does not change.

"""

from __future__ import annotations

from typing import Any

from arm_ext.fixes._warnings import warn
from arm_ext.lowering.sram import too_large
from arm_ext.patcher import Patcher
from executorch.backends.arm.scripts.get_ethosu_scratch_from_pte import (
    get_scratch_size_from_delegate,
)


def install(patcher: Patcher) -> None:
    patcher.wrap(
        "executorch.backends.arm.ethosu.backend:EthosUBackend._compile_tosa_flatbuffer",
        _compile,
        parameters=("tosa_flatbuffer", "compile_spec"),
    )


def _compile(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    _, compile_spec = (*args, *kwargs.values())
    flags = list(compile_spec.compiler_flags)  # Vela's arguments are added to them
    result = wrapped(*args, **kwargs)
    binary = getattr(result, "processed_bytes", result)  # the bytes alone in 1.4
    arena = get_scratch_size_from_delegate(binary)
    if message := too_large(flags, arena or 0):
        warn(message)
    return result
