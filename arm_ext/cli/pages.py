# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``arm-ext pages``: a page of documentation for each fix."""

import argparse
import sys
from pathlib import Path
from typing import Any


def _pages(args: argparse.Namespace) -> int:
    from arm_ext.cli import executorch_loads

    try:
        with executorch_loads():
            from arm_ext.pages import pages

            made = pages()
    except ImportError as error:
        print(f"arm-ext pages: a fix does not load: {error}", file=sys.stderr)
        return 2
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        (args.folder / f"{name}.md").write_text(text)
    print(f"{len(made)} pages in {args.folder}")
    return 0


def add(commands: Any) -> None:
    """Add the command to the parser of ``arm-ext``."""
    parser = commands.add_parser("pages", help="write a page for each fix")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.set_defaults(run=_pages)
