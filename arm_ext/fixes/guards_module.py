# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``prepare_pt2e`` fails on a module with guards.

``ExportedProgram.module()`` by default starts with a call of a module that
checks the inputs (https://github.com/pytorch/executorch/issues/16248).

Stock: the annotation pipeline of both quantizers consists of ``ExportPass``es,
and the first of them that interprets the graph raises "call_module is not
supported". A model in which no pass finds anything to rewrite works, and its
converted module checks the inputs.

Here: the guards are detached while the pipeline runs. The result gets them
back, on its own placeholders, and so they reach the converted module.

"""

from typing import Any

import torch
from arm_ext.fix import already_fixed, apply, cannot, Installed, Need
from arm_ext.fixes._annotation import annotate, PARAMETERS, PIPELINE, probe_program
from arm_ext.patcher import Patcher
from arm_ext.quantizer.guards import (
    attach_guards,
    Guards,
    guards_node,
    transform_without_guards,
)
from executorch.exir.pass_base import ExportPassBaseError
from torch.export._unlift import GuardsFn


def needs(installed: Installed) -> Need:
    program = probe_program()
    attach_guards(program, Guards("_guards_fn", _accept_all(), {}))
    try:
        result = annotate(program)
    except Exception as error:
        if _is_the_gap(error):
            return apply()
        return cannot(f"{PIPELINE} fails on a probe: {error}")
    if guards_node(result) is None:
        return apply()  # it throws the guards away
    return already_fixed("the annotation pipeline keeps the guards")


def install(patcher: Patcher) -> None:
    patcher.wrap(PIPELINE, _transform_without_guards, parameters=PARAMETERS)


def _is_the_gap(error: BaseException | None) -> bool:
    """Whether an ``ExportPass`` raised; the pass manager wraps what passes raise."""
    while error is not None and not isinstance(error, ExportPassBaseError):
        error = error.__cause__
    return error is not None


def _accept_all() -> torch.nn.Module:
    guards = GuardsFn()
    # As torch marks it, so that it is not dead code.
    guards._is_impure = True  # type: ignore[assignment]
    return guards


def _transform_without_guards(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> Any:
    return transform_without_guards(wrapped, *args, **kwargs)
