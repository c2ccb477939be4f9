# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What the benchmarks share: timing, power laws and the records they write."""

import argparse
import json
import math
import platform
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch


class Timed(NamedTuple):
    """CPU and wall seconds of the run with the least CPU time, and its result."""

    cpu: float
    wall: float
    result: Any


def timed(function: Callable[[], Any], repeat: int = 1) -> Timed:
    """Call ``function`` ``repeat`` times.

    Machines are shared, so CPU time is what ratios are taken of.

    """
    best = Timed(math.inf, math.inf, None)
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        result = function()
        run = Timed(time.process_time() - cpu, time.perf_counter() - wall, result)
        best = min(best, run, key=lambda run: run.cpu)
    return best


def peak_bytes(function: Callable[[], Any]) -> int:
    """Return the peak of Python memory during one call."""
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def exponent(
    records: Sequence[dict], seconds: str, size: str = "nodes"
) -> float | None:
    """Return the slope of a straight line through log(seconds) over log(size).

    Args:
        records (Sequence[dict]): Measurements.
        seconds (str): The field to fit; records without it are left out.
        size (str): The field to fit it over.

    """
    points = [
        (math.log(r[size]), math.log(r[seconds])) for r in records if seconds in r
    ]
    if len(points) < 2:
        return None
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points))
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return covariance / sum((x - mean_x) ** 2 for x, _ in points)


class Report:
    """Prints records as they come, one JSON object a line, and keeps them."""

    def __init__(self) -> None:
        self.records: list[dict] = []

    @staticmethod
    def add_argument(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", help="also write the records to this file")

    def add(self, record: dict) -> dict:
        self.records.append(record)
        print(json.dumps(record), flush=True)
        return record

    def write(self, path: str | None) -> None:
        if path is None:
            return
        machine = {"python": platform.python_version(), "torch": torch.__version__}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**machine, "records": self.records}, file, indent=1)
