# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Runs cases in worker processes, stock and patched, and outlives their crashes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, IO

from arm_ext import toolchain
from arm_ext.programs._program import Case, Left, Outcome

TIMEOUT = 600.0  # seconds for one case, loading executorch included
_WORKER = (sys.executable, "-m", "arm_ext.programs.worker")
Report = Callable[[str, Outcome], None]


class WorkerFailed(RuntimeError):
    """A worker process ended before its first case."""


@dataclass
class Side:
    """The outcomes of one executorch, stock or patched, by case name."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    fixes: list[dict[str, str]] = field(default_factory=list)


def run_side(
    cases: Sequence[Case], *, patched: bool, report: Report = lambda name, outcome: None
) -> Side:
    """Run cases in a worker process, started again behind every crash.

    Args:
        cases (Sequence[Case]): What to run, in this order.
        patched (bool): Whether the worker applies the fixes.
        report (Callable): Called with name and outcome of each finished case.

    Raises:
        WorkerFailed: A worker did not get as far as its first case.

    """
    side = Side()
    while missing := [c.name for c in cases if c.name not in side.outcomes]:
        for name, outcome in _run_worker(missing, patched, side):
            side.outcomes[name] = outcome
            report(name, outcome)
    return side


def run_both(
    cases: Sequence[Case], report: Report = lambda name, outcome: None
) -> tuple[Side, Side]:
    """Run cases on stock and on patched executorch at the same time.

    Returns:
        tuple[Side, Side]: Stock and patched.

    Raises:
        WorkerFailed: A worker did not get as far as its first case.

    """
    sides: dict[bool, Side] = {}
    failures: list[BaseException] = []

    def work(patched: bool) -> None:
        try:
            sides[patched] = run_side(cases, patched=patched, report=report)
        except BaseException as error:  # noqa: B036, the caller's thread raises it
            failures.append(error)

    threads = [
        threading.Thread(target=work, args=(patched,), daemon=True)
        for patched in (False, True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sides[False], sides[True]


def _run_worker(
    names: Sequence[str], patched: bool, side: Side
) -> Iterable[tuple[str, Outcome]]:
    """Yield the outcomes of one worker process, its crash the last of them."""
    with tempfile.TemporaryFile("w+", errors="replace") as noise:
        process = subprocess.Popen(
            _WORKER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=noise,
            text=True,
            env=_environment(patched),
        )
        running = None
        try:
            with cast(IO[str], process.stdin) as stdin:
                stdin.write(json.dumps(list(names)))
            for record in _records(process):
                if "fixes" in record:
                    side.fixes = record["fixes"]
                elif "start" in record:
                    running = record["start"]
                else:
                    running = None
                    yield record["case"], outcome_of(record["outcome"])
            status = process.wait()
        finally:
            process.kill()
            process.wait()
        if running is not None:
            yield running, Outcome(error=_why_ended(status, noise))
        elif status:
            raise WorkerFailed(_why_ended(status, noise))


def _records(process: subprocess.Popen) -> Iterable[dict[str, Any]]:
    """Yield a worker's lines; kill it when none comes for too long."""
    while True:
        watchdog = threading.Timer(TIMEOUT, process.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            line = cast(IO[str], process.stdout).readline()
        finally:
            watchdog.cancel()
        if not line:
            return
        yield json.loads(line)


def outcome_of(record: dict[str, Any]) -> Outcome:
    """Return the outcome that a worker wrote as JSON."""
    left = tuple(
        Left(**{**op, "reasons": tuple(op["reasons"])}) for op in record["left"]
    )
    return Outcome(**{**record, "left": left, "warnings": tuple(record["warnings"])})


def _environment(patched: bool) -> dict[str, str]:
    env = dict(os.environ)
    env.pop("ARM_EXT", None)
    if not patched:
        env["ARM_EXT"] = "0"
        # Stock is shown with a converter that starts: the gaps are in the models,
        # not in the age of the machine.
        with contextlib.suppress(toolchain.ToolUnavailable):
            env["MODEL_CONVERTER_PATH"] = str(toolchain.usable_converter())
    # Two workers at once: more threads each would only get in the other's way.
    env.setdefault("OMP_NUM_THREADS", "1")
    return env


def _why_ended(status: int, noise: IO[str]) -> str:
    if status < 0:
        return f"the process was ended by {signal.Signals(-status).name}"
    noise.seek(0)
    lines = [line.strip() for line in noise if line.strip()]
    return f"the process ended with {status}: {lines[-1] if lines else 'no message'}"
