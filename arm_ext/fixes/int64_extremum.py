# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""max and min of int64 along a dimension stay on the CPU.

The gap
    ``positions - positions.min(dim=1, keepdim=True).values`` is int64, and ``min``
    gives an index beside its values: two int64, of which nobody narrows the second.
What is done
    Before partitioning, where nobody reads the index,
    ``DropInt64ExtremumIndexPass`` makes it ``amin`` or ``amax``, which
    ``int64-arithmetic`` computes in int32 where the values provably fit.
What is refused
    An index that is read; values that may not fit. They stay with their reason.

"""

from __future__ import annotations

from arm_ext.fixes._before_partition import rewrite_before_partition, run_pass, WhyNot
from arm_ext.operators import Operator, U85, VGF
from arm_ext.passes.drop_int64_extremum_index_pass import (
    DropInt64ExtremumIndexPass,
    is_int64_extremum,
)
from arm_ext.patcher import Patcher
from torch.export import ExportedProgram

OPERATORS = tuple(
    Operator(
        op,
        ("int64",),
        (VGF, U85),
        "along a dimension, its index not read; values that provably fit int32",
        DropInt64ExtremumIndexPass,
    )
    for op in ("aten.max", "aten.min")
)


def install(patcher: Patcher) -> None:
    # Installed behind int64-arithmetic, it runs in front of it.
    rewrite_before_partition(patcher, is_int64_extremum, _rewrite)


def _rewrite(program: ExportedProgram, why_not: WhyNot) -> bool:
    del why_not  # amin and amax are on the CPU what min and max are
    return run_pass(DropInt64ExtremumIndexPass(), program)
