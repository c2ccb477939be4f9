# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Gives stock a model converter that starts, on a machine with an older glibc.

Tests that compare with stock would otherwise see its "Vgf compiler failed" there
and not the gap they are about.

"""

import contextlib
import os

import arm_ext
from arm_ext import toolchain

with contextlib.suppress(toolchain.ToolUnavailable):
    os.environ["MODEL_CONVERTER_PATH"] = str(toolchain.usable_converter())
arm_ext.revert()
arm_ext.apply()


def pytest_collection_modifyitems(items):
    """Start with the file that takes longest, so that no process waits for it."""
    items.sort(key=lambda item: item.path.parent.name != "upstream")
