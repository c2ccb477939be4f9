# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``prepare_pt2e`` on a module that still has its guards."""

import torch
from arm_ext.programs._program import Flow, Gap, INTEGER, Model, U55

GAP = Gap(
    1, "guards", "prepare_pt2e fails on a module with guards", fix="guards-module"
)


@GAP.program("vgf", "vgf-bf16", *INTEGER, U55, flow=Flow.GUARDS)
def conv_mean():
    """A convolution and a mean, which an annotation pass rewrites."""
    conv = torch.nn.Conv2d(3, 8, 3)
    model = Model(lambda m, x: m.layers[0](x).mean((2, 3)), conv)
    return model, (torch.randn(1, 3, 16, 16),)


@GAP.program("ethos-u85-256", flow=Flow.GUARDS)
def norm_softmax():
    """A classifier head with LayerNorm and softmax."""
    model = Model(
        lambda m, x: torch.softmax(m.layers[1](m.layers[0](x)), -1),
        torch.nn.Linear(16, 8),
        torch.nn.LayerNorm(8),
    )
    return model, (torch.randn(4, 16),)


@GAP.program("vgf", flow=Flow.GUARDS)
def nested_inputs():
    """Inputs in a tuple and a dict."""

    def forward(module, pair, named):
        return (pair[0] * pair[1] + named["bias"]).mean(-1)

    pair = (torch.randn(2, 8), torch.randn(2, 8))
    return Model(forward), (pair, {"bias": torch.randn(2, 8)})


@GAP.program("ethos-u85-256", flow=Flow.GUARDS, quantization="a16w8")
def int16_activations():
    """A linear and a mean with 16-bit activations."""
    model = Model(lambda m, x: m.layers[0](x).mean(-1), torch.nn.Linear(16, 8))
    return model, (torch.randn(4, 16),)


@GAP.program("vgf", "ethos-u85-256", flow=Flow.QAT)
def quantization_aware_training():
    """The first program, prepared for quantization-aware training."""
    return conv_mean()
