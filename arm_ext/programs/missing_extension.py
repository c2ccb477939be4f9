# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A dtype that the TOSA specification of the target lacks."""

import torch
from arm_ext.programs._program import Expected, Gap, Model

GAP = Gap(
    5, "extension", "the TOSA spec drops a dtype in silence", fix="spec-drops-dtype"
)
BF16 = 4e-2  # the kernels on the CPU accumulate in bf16


def _linear():
    return torch.nn.Linear(64, 64).to(torch.bfloat16).eval()


def _told(spec: str, delegates: int = 0) -> Expected:
    """The bf16 ops stay on the CPU, and a warning gives the spec to use."""
    return Expected(delegates, cpu_ops=None, tolerance=BF16, warns=spec)


@GAP.program("vgf", expected=_told("TOSA-1.0+FP+INT+int4+int16+bf16"))
def bf16_linear():
    """A bf16 Linear: left on the CPU, and the user is told."""
    return _linear(), (torch.randn(4, 64, dtype=torch.bfloat16),)


@GAP.program("vgf-bf16", expected=Expected(tolerance=BF16), control=True)
def bf16_linear_with_extension():
    """The same with the specification that the warning names."""
    return bf16_linear()


@GAP.program("vgf-fp", expected=_told("TOSA-1.0+FP+bf16"))
def bf16_chain():
    """A chain of bf16 ops on a target without integers."""
    x = torch.randn(4, 8, dtype=torch.bfloat16)
    return Model(lambda m, x: x * 2 + 1), (x,)


@GAP.program("vgf", expected=_told("TOSA-1.0+FP+INT+int4+int16+bf16", delegates=1))
def mixed_dtypes():
    """A bf16 Linear behind a float32 one."""

    def forward(module, x):
        return module.layers[1](module.layers[0](x).to(torch.bfloat16))

    model = Model(forward, torch.nn.Linear(64, 64), _linear())
    return model, (torch.randn(4, 64),)
