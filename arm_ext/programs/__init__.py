# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The reference programs: tiny models, one module per documented gap.

Each says what is expected of it once its gap is closed. ``arm-ext check`` and
the tests run them on stock and on the patched executorch. Needs torch alone;
:mod:`arm_ext.programs.runner` needs executorch.

"""

from arm_ext.programs._program import (
    Case,
    cases,
    Expected,
    Flow,
    Gap,
    Left,
    Outcome,
    POLICIES,
    Policy,
    Program,
    PROGRAMS,
    shortfalls,
)

# Importing a module registers its programs: this is the order of the table.
from arm_ext.programs import guards_module  # usort:skip  # noqa: F401
from arm_ext.programs import constant_index  # usort:skip  # noqa: F401
from arm_ext.programs import mish  # usort:skip  # noqa: F401
from arm_ext.programs import missing_lowerings  # usort:skip  # noqa: F401
from arm_ext.programs import int64_math  # usort:skip  # noqa: F401
from arm_ext.programs import missing_extension  # usort:skip  # noqa: F401
from arm_ext.programs import partition_time  # usort:skip  # noqa: F401
from arm_ext.programs import preserved_ops  # usort:skip  # noqa: F401
from arm_ext.programs import fallback  # usort:skip  # noqa: F401
from arm_ext.programs import policies  # usort:skip  # noqa: F401

__all__ = [
    "Case",
    "cases",
    "Expected",
    "Flow",
    "Gap",
    "Left",
    "Outcome",
    "POLICIES",
    "Policy",
    "Program",
    "PROGRAMS",
    "shortfalls",
]
