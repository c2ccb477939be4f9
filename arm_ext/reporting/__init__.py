# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What a lowered model runs where, and what would take the rest.

:func:`arm_ext.report` builds a :class:`Report`; ``arm-ext report`` prints it.

"""

from arm_ext.reporting.build import report
from arm_ext.reporting.data import CpuOp, Delegate, Estimate, Op, Report

__all__ = ["CpuOp", "Delegate", "Estimate", "Op", "Report", "report"]
