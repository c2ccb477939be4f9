# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""int64 arithmetic on indices."""

import torch
from arm_ext.programs._program import Expected, Gap, Model

GAP = Gap(4, "int64-math", "int64 index arithmetic stays on the CPU")
EXACT = Expected(tolerance=0.0, steps=0.0)


@GAP.program("vgf", expected=EXACT)
def remainder():
    """``argmax % 7``."""
    model = Model(lambda m, x: (x.argmax(-1) % 7).to(torch.float32))
    return model, (torch.randn(64, 16),)


@GAP.program("vgf", expected=EXACT)
def floor_division():
    """``argmax // 3 + 1``."""
    model = Model(lambda m, x: (x.argmax(-1) // 3 + 1).to(torch.float32))
    return model, (torch.randn(64, 16),)
