# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""LeRobot's policies, in the parts that are exported, small and with random weights."""

# Importing a module registers its parts: this is the order of the table.
from arm_ext.programs.policies import act  # usort:skip  # noqa: F401
from arm_ext.programs.policies import diffusion  # usort:skip  # noqa: F401
from arm_ext.programs.policies import smolvla  # usort:skip  # noqa: F401
from arm_ext.programs.policies import vqbet  # usort:skip  # noqa: F401
from arm_ext.programs.policies import reward_classifier  # usort:skip  # noqa: F401


from arm_ext.programs.policies._lerobot import missing

__all__ = ["missing"]
