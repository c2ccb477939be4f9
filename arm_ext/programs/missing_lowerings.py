# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Ops without a TOSA lowering, which split the graph."""

from dataclasses import replace

import torch
from arm_ext.programs._program import Expected, Gap, Model, U55

CONV = Gap(4, "conv-transpose1d", "ConvTranspose1d stays on the CPU")
ARG = Gap(
    4, "argmin", "argmin and most of argmax stay on the CPU", fix="argmin-argmax"
)
TOPK = Gap(4, "topk", "topk stays on the CPU")
EXACT = Expected(tolerance=0.0, steps=0.0)
INT64_OUTPUT = replace(EXACT, cpu_ops=("dim_order_ops._to_dim_order_copy.default",))


@CONV.program("vgf", "ethos-u85-256")
def stride_two():
    """The upsampling of a Diffusion Policy's U-Net."""
    model = torch.nn.ConvTranspose1d(16, 8, 4, stride=2, padding=1).eval()
    return model, (torch.randn(1, 16, 32),)


@CONV.program("vgf", control=True)
def two_dimensions_for_comparison():
    """The same as ConvTranspose2d."""
    model = torch.nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1).eval()
    return model, (torch.randn(1, 16, 32, 1),)


@ARG.program("vgf", expected=EXACT, control=True)
def argmax_for_comparison():
    """``argmax`` cast to int32."""
    model = Model(lambda m, x: x.argmax(-1).to(torch.int32))
    return model, (torch.randn(64, 16),)


@ARG.program("vgf", "ethos-u85-256", expected=EXACT)
def argmin():
    """``argmin`` cast to int32."""
    model = Model(lambda m, x: x.argmin(-1).to(torch.int32))
    return model, (torch.randn(64, 16),)


@ARG.program("ethos-u85-256", expected=EXACT)
def argmax():
    """``argmax`` of a quantized tensor."""
    model = Model(lambda m, x: x.argmax(-1).to(torch.int32))
    return model, (torch.randn(64, 16),)


@ARG.program("vgf", "ethos-u85-256", U55, expected=INT64_OUTPUT)
def int64_output():
    """``argmin`` of all elements, as the int64 that it is."""
    return Model(lambda m, x: x.argmin()), (torch.randn(4, 16),)


@ARG.program("vgf", "ethos-u85-256", expected=EXACT)
def row_picked():
    """Rows picked by ``argmax``."""
    return Model(lambda m, x: x[x.argmax(0)]), (torch.randn(16, 16),)


@TOPK.program("vgf", "ethos-u85-256", expected=EXACT)
def values():
    """The eight largest of a [64, 16] score."""
    return Model(lambda m, x: x.topk(8).values), (torch.randn(64, 16),)


@TOPK.program("vgf", expected=EXACT)
def rows_picked():
    """Rows picked by topk indices."""
    model = Model(lambda m, x: x[x.sum(-1).topk(8).indices])
    return model, (torch.randn(64, 16),)
