# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Say that a float model needs to be quantized for an integer-only target.

The gap: a model that was not quantized lowers for Ethos-U, or for VGF with an
integer-only specification, to no delegate at all, and nothing says so.

What we do: after ``partition()`` one warning, through ``warnings`` and the logger,
with the calls that quantize. What is delegated does not change.

"""

from __future__ import annotations

from arm_ext.fixes._warnings import warn_after_partition
from arm_ext.partitioner.unquantized import unquantized
from arm_ext.patcher import Patcher


def install(patcher: Patcher) -> None:
    warn_after_partition(patcher, unquantized)
