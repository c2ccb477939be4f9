# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``arm-ext``: what the package changed, and the proof on real programs."""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence

from arm_ext.cli import (
    api,
    bench,
    check,
    fuzz,
    operators,
    pages,
    report,
    setup_converter,
    upstream,
)


@contextlib.contextmanager
def executorch_loads() -> Iterator[None]:
    """Keep what executorch and torchao print while they load from the user.

    Their native libraries write to the file descriptor, so that is what goes to
    the null device; an exception is printed as ever.

    """
    sys.stderr.flush()
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def _status(args: argparse.Namespace) -> int:
    import arm_ext

    with executorch_loads():
        arm_ext._apply_from_environment()
    print(arm_ext.status())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arm-ext", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    status = commands.add_parser("status", help="list the fixes and their state")
    status.set_defaults(run=_status)
    check.add(commands)
    report.add(commands)
    bench.add(commands)
    api.add(commands)
    fuzz.add(commands)
    operators.add(commands)
    pages.add(commands)
    setup_converter.add(commands)
    upstream.add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``arm-ext`` and return its exit status."""
    args = _parser().parse_args(argv)
    return args.run(args)
