# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``arm-ext operators``: what the fixes lower, on which targets, in which types."""

import argparse
import sys
from typing import Any


def _operators(args: argparse.Namespace) -> int:
    from arm_ext import operators
    from arm_ext._table import render
    from arm_ext.cli import executorch_loads

    try:
        with executorch_loads():
            rows = operators.rows()
    except ImportError as error:
        print(f"arm-ext operators: a fix does not load: {error}", file=sys.stderr)
        return 2
    if args.markdown:
        print(operators.markdown(), end="")
    else:
        print(render(operators.HEADER, rows))
    return 0


def add(commands: Any) -> None:
    """Add the command to the parser of ``arm-ext``."""
    parser = commands.add_parser(
        "operators", help="list the operators that the fixes lower, and their limits"
    )
    parser.add_argument(
        "--markdown", action="store_true", help="print docs/operators.md"
    )
    parser.set_defaults(run=_operators)
