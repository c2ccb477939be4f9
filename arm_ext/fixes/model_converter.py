# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The model converter does not start on an older glibc.

Gap: the converter that executorch pins is built for glibc 2.38, so on Debian 12
every VGF lowering ends in "Vgf compiler failed" and a loader trace; and in an
environment that is not activated its script is not on PATH.

Stock: takes MODEL_CONVERTER_PATH or the first one on PATH, whether it starts or
not (``backends/arm/vgf/model_converter.py``).

Here: the wheel's converter is found too, and the one found is started through
the private glibc that ``arm-ext setup-converter`` sets up. What there is to find
is looked up at each compilation, so that the set-up may come after the import.

Refuses: a converter that does not start either way is an error of one sentence.

"""

from pathlib import Path
from typing import Any

from arm_ext import toolchain
from arm_ext.fix import already_fixed, apply, Installed, Need
from arm_ext.patcher import Patcher
from executorch.backends.arm.vgf import model_converter

_MODULE = "executorch.backends.arm.vgf.model_converter"


def needs(installed: Installed) -> Need:
    """Needed unless the converter that stock takes starts."""
    binary = model_converter.find_model_converter_binary()
    executable = binary and model_converter.resolve_model_converter_executable(binary)
    if executable and toolchain.why_not(executable) is None:
        return already_fixed(f"{executable} starts")
    return apply()


def _find(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> str | None:
    try:
        return str(toolchain.usable_converter())
    except toolchain.ToolUnavailable:
        return wrapped(*args, **kwargs)


def _require(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Path:
    return toolchain.usable_converter()


def install(patcher: Patcher) -> None:
    """Look for a converter that starts, and say in one sentence if none does."""
    patcher.wrap(f"{_MODULE}:find_model_converter_binary", _find, parameters=())
    patcher.wrap(
        f"{_MODULE}:require_model_converter_executable", _require, parameters=()
    )
