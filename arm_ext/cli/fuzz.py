# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``arm-ext fuzz``: lower random programs and compare them with eager PyTorch."""

import argparse
from pathlib import Path
from typing import Any


def _fuzz(args: argparse.Namespace) -> int:
    import arm_ext
    from arm_ext.cli import executorch_loads

    with executorch_loads():
        arm_ext._apply_from_environment()
        from arm_ext import fuzz
    programs = found = 0
    for finding in fuzz.findings(args.seconds, args.seed):
        programs += 1
        if finding is not None:
            found += 1
            path = Path(args.directory) / f"fuzz_{finding.program.seed}.py"
            path.write_text(finding.program.source())
            print(f"{path}: {finding.program.target}: {finding.what}", flush=True)
    print(f"{programs} programs from seed {args.seed}: {found} kinds of findings")
    return int(found > 0)


def add(commands: Any) -> None:
    """Add the command to the parser of ``arm-ext``."""
    parser = commands.add_parser(
        "fuzz",
        help="lower random programs and compare them with eager PyTorch",
        description="Writes the smallest program of each kind of failure: an "
        "exception, a crash, a wrong number, a node on the CPU without a reason. "
        "Exit status: 0 if there is none, 1 otherwise.",
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--directory", default=".", help="where programs are written; here by default"
    )
    parser.set_defaults(run=_fuzz)
