# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""An error names no pass, and a bad Ethos-U target ends Python.

The gap
    A pass that fails is called ``_ExportedProgramGraphPassAdapter``, and so are the
    hundred passes before it. A misspelt Ethos-U target or flag is found by Vela, which
    leaves the Python process.
What is done
    The adapter goes by the name of its pass. Where Vela would leave Python, a
    ``ValueError`` has its message, with the values that it knows.

"""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

from arm_ext.patcher import Patcher


def install(patcher: Patcher) -> None:
    patcher.wrap(
        "executorch.exir.pass_manager:_get_pass_name",
        _name_of_wrapped_pass,
        parameters=("fn",),
    )
    patcher.wrap(
        "executorch.backends.arm.arm_vela:vela_compile",
        _raise_what_vela_says,
        parameters=(
            "tosa_flatbuffer",
            "args",
            "verbose",
            "intermediate_path",
            "block_placements",
        ),
    )


def _name_of_wrapped_pass(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> str:
    (fn,) = (*args, *kwargs.values())
    return wrapped(getattr(fn, "graph_pass", fn))


def _raise_what_vela_says(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> Any:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return wrapped(*args, **kwargs)
    except SystemExit as left:
        lines = said.getvalue().strip().splitlines() or [f"exit status {left.code}"]
        raise ValueError(f"Vela refuses its arguments: {lines[-1]}") from left
    finally:
        sys.stderr.write(said.getvalue())
