# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Mish, which the Arm quantizer does not annotate."""

import torch
from arm_ext.programs._program import Expected, Flow, Gap, Model, U55

GAP = Gap(3, "mish", "Mish stays in float on the CPU", fix="mish")


def _block(activation: torch.nn.Module):
    layers = (torch.nn.Conv1d(16, 16, 3, padding=1) for _ in range(2))
    first, second = layers
    model = torch.nn.Sequential(first, activation, second).eval()
    return model, (torch.randn(1, 16, 32),)


@GAP.program("ethos-u85-256", control=True)
def silu_for_comparison():
    """Conv1d, SiLU, Conv1d."""
    return _block(torch.nn.SiLU())


@GAP.program("ethos-u85-256", U55, "vgf-int")
def conv_mish_conv():
    """Conv1d, Mish, Conv1d."""
    return _block(torch.nn.Mish())


@GAP.program("ethos-u85-256", U55, "vgf-int", flow=Flow.QAT)
def qat_inplace():
    """The same with an in-place Mish, through QAT."""
    return _block(torch.nn.Mish(inplace=True))


@GAP.program("ethos-u85-256", U55, "vgf-int", quantization="a16w8")
def sixteen_bit():
    """The same with 16 bit activations."""
    return _block(torch.nn.Mish())


@GAP.program("vgf", "vgf-fp", expected=Expected(tolerance=1e-6))
def large_negative():
    """Mish in float where stock's tanh underflows, scaled to numbers around 1."""
    x = torch.linspace(-30, -16, 57)
    return Model(lambda m, x: torch.nn.functional.mish(x) * 1e6), (x,)
