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


def _complaint(args: argparse.Namespace) -> str | None:
    """Return what is wrong with the arguments, if anything is."""
    from arm_ext.fix import TABLE
    from arm_ext.upstream.change import Checkout, Refused

    try:
        Checkout(args.checkout)
    except Refused as refused:
        return str(refused)
    known = [fix.name for fix in TABLE]
    for name in args.fix or ():
        if name not in known:
            return f"no fix is called {name!r}"
    if args.branch and _git(args.checkout, "status", "--porcelain"):
        return "the checkout has changes of its own"
    return None


def _apply(name: str, checkout: Any) -> bool:
    """Put a fix into a checkout and return whether it fits; say why not."""
    from arm_ext.fix import TABLE
    from arm_ext.upstream.change import Refused
    from arm_ext.upstream.changes import CHANGES, why_not

    (fix,) = (fix for fix in TABLE if fix.name == name)
    try:
        if name not in CHANGES:
            raise Refused(why_not(fix))
        CHANGES[name].apply(checkout)
    except Refused as refused:
        print(f"{name}: refused\n  " + str(refused).replace("\n", "\n  "))
        return False
    return True


def _upstream(args: argparse.Namespace) -> int:
    from arm_ext.upstream.change import Checkout
    from arm_ext.upstream.changes import CHANGES

    if complaint := _complaint(args):
        print(f"arm-ext upstream: {complaint}", file=sys.stderr)
        return 2
    names = args.fix or list(CHANGES)
    fitting = []
    for group in [[name] for name in names] if args.branch else [names]:
        checkout = Checkout(args.checkout)
        written = [name for name in group if _apply(name, checkout)]
        fitting += written
        _finish(checkout, args.dry_run)
        if args.branch and written and not args.dry_run:
            message, paths = CHANGES[written[0]].message, list(checkout.changed)
            branch = _commit(args.checkout, written[0], message, paths)
            print(f"{written[0]}: branch {branch}")
    return int(fitting != names)


def _finish(checkout: Any, dry_run: bool) -> None:
    if dry_run:
        print(checkout.diff(), end="")
        return
    checkout.write()
    print("".join(f"{path}\n" for path in checkout.changed), end="")


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
