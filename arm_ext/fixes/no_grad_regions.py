# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What a model does under ``torch.no_grad()`` is not quantized.

The gap
    ``torch.export`` keeps such a region as a submodule, unless it exports under
    ``no_grad`` itself. A quantizer annotates the top-level graph alone, so that the
    region is float: on an integer target all of it stays on the CPU, without a word.
    Frozen image encoders and codebooks are such regions.
What is done
    Before annotation ``InlineGradModePass`` puts them where they are called, and
    fuses their batch norms into the convolutions. ``RemoveDetachPass`` removes
    ``detach``, which becomes an ``alias_copy`` on the CPU.

"""

from __future__ import annotations

from arm_ext.fixes._passes import run_before_annotation
from arm_ext.passes.inline_grad_mode_pass import InlineGradModePass
from arm_ext.passes.remove_detach_pass import RemoveDetachPass
from arm_ext.patcher import Patcher


def install(patcher: Patcher) -> None:
    run_before_annotation(patcher, lambda: RemoveDetachPass(tfa_pass=True))
    # What is wrapped last runs first: the others are to see the whole graph.
    run_before_annotation(patcher, lambda: InlineGradModePass(tfa_pass=True))
