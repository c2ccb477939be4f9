# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``arm-ext setup-converter``: make the model converter start on this machine."""

import argparse
import sys
from typing import Any


def _setup_converter(args: argparse.Namespace) -> int:
    from arm_ext import toolchain

    try:
        converter = toolchain.set_up_converter()
    except toolchain.ToolUnavailable as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The model converter starts: {converter}")
    return 0


def add(commands: Any) -> None:
    """Add the command to the parser of ``arm-ext``."""
    parser = commands.add_parser(
        "setup-converter",
        help="make the VGF model converter start on a machine with an older glibc",
    )
    parser.set_defaults(run=_setup_converter)
