# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``arm-ext bench``: run one of the benchmarks."""

import argparse
import importlib
from typing import Any

# Modules of arm_ext.benchmarks with a ``main(argv)``.
BENCHMARKS = {
    "partitioner": "the proposal of partitions alone, on families of FX graphs",
    "partition": "all of partition(), on the report's blocks",
    "lowering": "whole lowerings, on stock and patched",
    "mish": "Vela's cycles of Conv1d, Mish, Conv1d on Ethos-U",
    "plot": "draw what one of them wrote with --json",
}


def add(commands: Any) -> None:
    """Add the command to the parser of ``arm-ext``."""
    parser = commands.add_parser(
        "bench",
        help="run a benchmark",
        description="\n".join(f"{name}: {text}" for name, text in BENCHMARKS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("benchmark", choices=BENCHMARKS)
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="its own; -h lists them"
    )
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    benchmark = importlib.import_module(f"arm_ext.benchmarks.{args.benchmark}")
    benchmark.main(args.arguments)
    return 0
