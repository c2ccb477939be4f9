# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""An op kept from decomposition is taken by the partitioner, or decomposed.

The gap: the Arm partitioner keeps some ops whole (``linear``, ``pad``,
``selu``, ...) whatever their dtype or rank, and then leaves some of them on the
CPU. There is often no kernel for the whole op there, so ``to_executorch``
fails with "Missing out variants", or a ``.pte`` is written that the runtime
refuses. Beside it, some nodes are accepted that the backend then fails on: a
negative ``pad``, an integer ``logit``, a ``linear`` whose weight is an input.

What we do: the filter that keeps an op also asks the partitioner's own support
chain; the chain gains the checks it lacks; and a negative constant pad is
lowered to SLICE. What is refused stays on the CPU, decomposed as it would be
without the Arm partitioner, with its reason in the reject report; a negative pad
among it becomes a slice, because the portable kernel takes no negative size.

"""

from __future__ import annotations

import inspect
from typing import Any

from arm_ext import fix
from arm_ext.fixes._before_partition import rewrite_before_partition, run_pass, WhyNot
from arm_ext.fixes._passes import insert_passes
from arm_ext.fixes._support import check_last
from arm_ext.partitioner.lowerable import GridSamplerSupport, LowerableCheck
from arm_ext.partitioner.preserved import KeepWhatIsTaken
from arm_ext.passes.decompose_cpu_crop_pass import DecomposeCpuCropPass, is_crop
from arm_ext.passes.decompose_negative_pad_pass import DecomposeNegativePadPass
from executorch.backends.arm._passes import ArmPassManager
from executorch.backends.arm._passes.convert_split_to_slice import (
    ConvertSplitToSlicePass,
)
from executorch.backends.arm.tosa import partitioner as tosa_partitioner
from executorch.backends.arm.vgf import VgfPartitioner
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import ExportedProgram
from torch.fx.passes.operator_support import any_chain

_PARTITIONER = "executorch.backends.arm.tosa.partitioner:TOSAPartitioner"
_GRID_SAMPLER = exir_ops.edge.aten.grid_sampler_2d.default


def needs(installed: fix.Installed) -> fix.Need:
    """Apply where the stock filter does not look at the support chain."""
    del installed
    keep = inspect.getsource(tosa_partitioner.TOSAPartitioner.ops_to_not_decompose)
    if "_create_operator_support" in keep:
        return fix.already_fixed("the filter asks the partitioner's support chain")
    return fix.apply()


def install(patcher: Any) -> None:
    patcher.wrap(
        f"{_PARTITIONER}.ops_to_not_decompose",
        _keep_what_is_taken,
        parameters=("self", "ep"),
    )
    patcher.wrap(
        f"{_PARTITIONER}._create_operator_support",
        _accept_grid_sampler,
        parameters=("self", "containing_program", "reporter"),
    )
    check_last(
        patcher,
        lambda partitioner, program, reporter, accepts: LowerableCheck(
            program, partitioner.tosa_spec, reporter, accepts
        ),
    )
    patcher.wrap(
        "executorch.backends.arm.vgf.partitioner:VgfPartitioner.__init__",
        _check_grid_sampler_like_any_op,
        parameters=("self", "compile_spec", "additional_checks"),
    )
    insert_passes(patcher, _insert_decompose_negative_pad)
    rewrite_before_partition(patcher, is_crop, _slice_on_cpu)


def _slice_on_cpu(program: ExportedProgram, why_not: WhyNot) -> bool:
    return run_pass(DecomposeCpuCropPass(why_not), program)


def _keep_what_is_taken(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    ops, kept = wrapped(*args, **kwargs)
    (program,) = (*args, *kwargs.values())
    return ops, KeepWhatIsTaken(
        program,
        instance.tosa_spec,
        support=lambda reporter: instance._create_operator_support(program, reporter),
        kept=kept,
        candidates=set(ops) - instance._custom_partition_ops,
    )


def _accept_grid_sampler(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    support = wrapped(*args, **kwargs)
    if not isinstance(instance, VgfPartitioner):
        return support
    _, reporter = inspect.signature(wrapped).bind(*args, **kwargs).args
    return any_chain(GridSamplerSupport(instance.tosa_spec, reporter), support)


def _check_grid_sampler_like_any_op(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> None:
    """A registered custom op is exempt from every check, of its dtype too."""
    wrapped(*args, **kwargs)
    instance._custom_partition_ops.discard(_GRID_SAMPLER)


def _insert_decompose_negative_pad(
    manager: ArmPassManager, program: ExportedProgram
) -> None:
    manager.insert_passes_before(ConvertSplitToSlicePass, [DecomposeNegativePadPass()])
