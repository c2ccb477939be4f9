# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Say when ops stay on the CPU only because the TOSA spec lacks an extension.

The gap: the default ``VgfCompileSpec`` has no ``bf16``; a bf16 model lowers to
nothing at all, and the reason goes to ``logger.info``. The same holds for
``fp8e4m3``, ``fp8e5m2``, ``cf`` (``cond``, ``while_loop``), ``int16``, and in
TOSA 1.1 ``shape`` and ``mxfp``. ``int64`` of TOSA 1.1 is not among them: the
support checks take it, but the backend cannot serialize an int64 tensor.

What we do: after ``partition()`` one warning a call, through ``warnings`` and
the logger, with the number of ops, the first of them, and the string to pass.
What is delegated does not change, and nothing is said where an extension would
not help or the target's hardware fixes the specification.

"""

from __future__ import annotations

from arm_ext.fixes._warnings import warn_after_partition
from arm_ext.partitioner.spec_extensions import missing_extensions
from arm_ext.patcher import Patcher


def install(patcher: Patcher) -> None:
    warn_after_partition(patcher, missing_extensions)
