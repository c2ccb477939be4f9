# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``arm-ext``: what the package changed, and the proof on real programs."""

import argparse
from collections.abc import Sequence

from arm_ext.cli import check, setup_converter


def _status(args: argparse.Namespace) -> int:
    import arm_ext

    print(arm_ext.status())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arm-ext", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    status = commands.add_parser("status", help="list the fixes and their state")
    status.set_defaults(run=_status)
    check.add(commands)
    setup_converter.add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``arm-ext`` and return its exit status."""
    args = _parser().parse_args(argv)
    return args.run(args)
