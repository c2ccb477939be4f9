# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Programs that must fall back with a reason, from public reports."""

import torch
from arm_ext.programs._program import Expected, Gap, Model, U55

BOUNDARY = Gap(
    0,
    "boundary",
    "an integer delegate declares a float output",
    fix="delegate-boundary",
)
DYNAMIC = Gap(
    0, "dynamic-batch", "a dynamic batch stops the lowering", fix="lowering-fallback"
)
SPECIAL = Gap(0, "special-values", "isnan, isinf and fmod stay on the CPU")


@BOUNDARY.program(
    "ethos-u85-256",
    U55,
    expected=Expected(delegates=2, cpu_ops=("aten.atan2.default",)),
)
def shared_split():
    """Half of a split leaves the delegate twice: to the CPU and as an output."""

    def forward(module, x):
        first, second = module.layers[0](x).split(4, 1)
        flat = second.flatten(2)
        turned = torch.atan2(flat, flat + 1.0)
        return module.layers[1](first).flatten(2) + turned, second

    model = Model(forward, torch.nn.Conv2d(4, 8, 1), torch.nn.Conv2d(4, 4, 1))
    return model, (torch.randn(1, 4, 4, 4),)


DYNAMIC_BATCH = (({0: torch.export.Dim("b", max=16)},),)


@DYNAMIC.program(
    "vgf",
    dynamic_shapes=DYNAMIC_BATCH,
    expected=Expected(cpu_ops=("aten.addmm.default",)),
)
def linear():
    """A Linear with a dynamic batch."""
    return Model(lambda m, x: m.layers[0](x), torch.nn.Linear(8, 8)), (
        torch.randn(3, 8),
    )


@DYNAMIC.program(
    "vgf",
    dynamic_shapes=DYNAMIC_BATCH,
    expected=Expected(
        delegates=0,
        cpu_ops=("aten.convolution.default",),
        warns="could not be lowered",
    ),
)
def conv():
    """A convolution with a dynamic batch."""
    return Model(lambda m, x: m.layers[0](x), torch.nn.Conv2d(3, 4, 3)), (
        torch.randn(3, 3, 8, 8),
    )


@SPECIAL.program("vgf")
def fmod():
    """``fmod`` of two tensors."""
    model = Model(lambda m, x, y: torch.fmod(x, y))
    return model, (torch.randn(4, 8) * 9, torch.rand(4, 8) + 1)


@SPECIAL.program("vgf", expected=Expected(tolerance=0.0))
def nan_to_num():
    """``nan_to_num``, by isnan and isinf."""
    x = torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])
    return Model(lambda m, x: torch.nan_to_num(x, 0.0, 9.0, -9.0)), (x,)
