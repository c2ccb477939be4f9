# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Programs that must fall back with a reason, from public reports."""

import torch
from arm_ext.programs._program import Expected, Gap, Model, U55

BOUNDARY = Gap(0, "boundary", "an integer delegate declares a float output")
DYNAMIC = Gap(0, "dynamic-batch", "a dynamic batch stops the lowering")
SPECIAL = Gap(0, "special-values", "isnan, isinf and fmod stay on the CPU")


@BOUNDARY.program("ethos-u85-256", U55)
def shared_input():
    """A split that a convolution and an op on the CPU read."""

    def forward(module, x):
        a, b = module.layers[0](x).chunk(2, 1)
        return module.layers[1](a), torch.atan2(a, b)

    model = Model(forward, torch.nn.Conv2d(4, 8, 1), torch.nn.Conv2d(4, 4, 1))
    return model, (torch.randn(1, 4, 4, 4),)


@DYNAMIC.program("vgf", dynamic_shapes=((({0: torch.export.Dim("b", max=16)},),)))
def linear():
    """A Linear with a dynamic batch."""
    return Model(lambda m, x: m.layers[0](x), torch.nn.Linear(8, 8)), (
        torch.randn(3, 8),
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
