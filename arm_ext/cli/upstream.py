# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``arm-ext upstream``: write fixes into an executorch source checkout."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.strip()


def _commit(root: Path, fix: str, message: str, paths: Sequence[str]) -> str:
    """Commit what was written on a branch of its own, and go back; return its name."""
    branch = f"arm-ext-{fix}"
    back = _git(root, "rev-parse", "--abbrev-ref", "HEAD")
    if back == "HEAD":
        back = _git(root, "rev-parse", "HEAD")
    _git(root, "checkout", "-q", "-b", branch)
    _git(root, "add", "--", *paths)
    _git(root, "commit", "-q", "-s", "-m", message)
    _git(root, "checkout", "-q", back)
    return branch


def _upstream(args: argparse.Namespace) -> int:
    from arm_ext.fix import TABLE
    from arm_ext.upstream.change import Checkout, Refused
    from arm_ext.upstream.changes import CHANGES, why_not

    known = [fix.name for fix in TABLE]
    unknown = [name for name in args.fix or () if name not in known]
    if unknown:
        print(f"arm-ext upstream: no fix is called {unknown[0]!r}", file=sys.stderr)
        return 2
    try:
        checkout = Checkout(args.checkout)
    except Refused as refused:
        print(f"arm-ext upstream: {refused}", file=sys.stderr)
        return 2
    if args.branch and _git(args.checkout, "status", "--porcelain"):
        print("arm-ext upstream: the checkout has changes of its own", file=sys.stderr)
        return 2
    failed = False
    for name in args.fix or CHANGES:
        if args.branch:
            checkout = Checkout(args.checkout)
        try:
            if name not in CHANGES:
                raise Refused(why_not(name))
            CHANGES[name].apply(checkout)
        except Refused as refused:
            print(f"{name}: refused\n  " + str(refused).replace("\n", "\n  "))
            failed = True
            continue
        if args.branch and not args.dry_run:
            checkout.write()
            paths = list(checkout.changed)
            branch = _commit(args.checkout, name, CHANGES[name].message, paths)
            print(f"{name}: branch {branch}")
        elif args.branch:
            print(checkout.diff(), end="")
    if args.branch:
        return int(failed)
    if args.dry_run:
        print(checkout.diff(), end="")
    else:
        checkout.write()
        print("\n".join(checkout.changed))
    return int(failed)


def add(commands: Any) -> None:
    """Add the command to the parser of ``arm-ext``."""
    parser = commands.add_parser(
        "upstream", help="write fixes into an executorch source checkout"
    )
    parser.add_argument("--checkout", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--fix", action="append", metavar="NAME", help="a fix; all that can be written"
    )
    parser.add_argument(
        "--branch", action="store_true", help="a branch and a commit for each fix"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the diff")
    parser.set_defaults(run=_upstream)
