# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``arm-ext check``: the reference programs on stock and on patched executorch."""

import argparse
import dataclasses
import itertools
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from arm_ext._engine import installed_versions
from arm_ext.cli import check_markdown
from arm_ext.cli.check_markdown import markers
from arm_ext.partitioner.reject_report import without_schema
from arm_ext.programs import (
    Case,
    cases,
    Left,
    Outcome,
    policies,
    POLICIES,
    Policy,
    shortfalls,
)
from arm_ext.programs.workers import run_both, Side, WorkerFailed
from rich.console import Console, Group
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

SCHEMA = 1


class Verdict(str, Enum):
    """How a patched program compares with its expectation."""

    MET = "met"
    OPEN = "open"
    WORSE = "worse"


@dataclass(frozen=True)
class Row:
    """One case, its two outcomes and in what the patched one falls short."""

    case: Case
    stock: Outcome
    patched: Outcome

    @property
    def shortfalls(self) -> list[str]:
        return shortfalls(self.patched, self.case)

    @property
    def verdict(self) -> Verdict:
        if not self.shortfalls:
            return Verdict.MET
        return Verdict.OPEN if self.case.is_open else Verdict.WORSE


def add(commands: Any) -> None:
    """Add the command to the parser of ``arm-ext``."""
    parser = commands.add_parser(
        "check",
        help="run the reference programs on stock and on patched executorch",
        description="Lowers each reference program with stock and with patched "
        "executorch, runs its delegates on the TOSA reference model and compares "
        "with eager PyTorch. Exit status: 0 when each patched program is as "
        "expected or its gap is still open, 1 when one is worse, 2 when the check "
        "cannot run.",
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="run programs or gaps whose name starts with NAME; may be repeated",
    )
    parser.add_argument(
        "--target",
        action="append",
        metavar="TARGET",
        help="run on this target only; may be repeated",
    )
    parser.add_argument(
        "--policies",
        action="store_true",
        help="run LeRobot's policies as well, which take minutes; --only finds them",
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="give every reason, and line, of every op that either side leaves",
    )
    parser.add_argument("--json", metavar="FILE", help="write everything to FILE")
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help="write the tables of README into FILE, between its markers",
    )
    parser.add_argument("--list", action="store_true", help="list the programs only")
    parser.set_defaults(run=check)


def check(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    console = Console()
    chosen = _choose(args.only, args.target, args.policies)
    if not chosen:
        return _cannot("no reference program matches; --list names them")
    if args.list:
        console.print(_list(chosen))
        return 0
    if reason := _missing(chosen):
        return _cannot(reason)
    if args.json and not os.access(Path(args.json).resolve().parent, os.W_OK):
        return _cannot(f"--json: {args.json} is not in a folder that can be written")
    if args.markdown and (reason := _no_place(args.markdown)):
        return _cannot(f"--markdown: {reason}")
    start = time.perf_counter()
    try:
        stock, patched = _run(chosen)
    except WorkerFailed as error:
        return _cannot(f"executorch's Arm backend does not load: {error}")
    except KeyboardInterrupt:
        return _cannot("interrupted")
    rows = [
        Row(case, stock.outcomes[case.name], patched.outcomes[case.name])
        for case in chosen
    ]
    console.print(_report(rows, args.verbose, console.width))
    console.print(_summary(rows, patched, time.perf_counter() - start))
    if args.json:
        Path(args.json).write_text(json.dumps(_as_json(rows, patched), indent=2) + "\n")
    if args.markdown:
        text = args.markdown.read_text(encoding="utf-8")
        args.markdown.write_text(check_markdown.write(text, rows), encoding="utf-8")
        if not_run := len(cases()) + len(cases(POLICIES)) - len(chosen):
            console.print(
                f"{args.markdown}: {_count(not_run, 'program')} not run; their lines "
                "are as they were"
            )
    return int(any(row.verdict is Verdict.WORSE for row in rows))


def _choose(
    only: Sequence[str] | None,
    targets: Sequence[str] | None,
    policies: bool = False,
) -> list[Case]:
    def wanted(case: Case) -> bool:
        # "index" is the gap, "index/neg" and "neg" programs of it.
        names = (case.name, case.program.name.partition("/")[2])
        named = not only or any(n.startswith(o) for o in only for n in names)
        return named and (not targets or case.target in targets)

    # Policies take minutes, so they are to be asked for.
    everything = cases() + (cases(POLICIES) if only or policies else [])
    return [case for case in everything if wanted(case)]


def _cannot(reason: str) -> int:
    print(f"arm-ext check: {reason}", file=sys.stderr)
    return 2


def _no_place(path: Path) -> str | None:
    """Return why the tables cannot be written into a file; None if they can."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        return str(error)
    lines = [line for name in check_markdown.TABLES for line in markers(name)]
    absent = [line for line in lines if line not in text]
    return f"{path} has no line {absent[0]}" if absent else None


def _missing(chosen: Sequence[Case]) -> str | None:
    """Return in one sentence what is missing and what to do; None when nothing."""
    if installed_versions() is None:
        return (
            "executorch is not installed; "
            "`pip install 'executorch-arm-ext[executorch]'` brings the tested release"
        )
    if any(isinstance(case.program.gap, Policy) for case in chosen):
        if reason := policies.missing():
            return reason
    if any(case.target.startswith("vgf") for case in chosen):
        from arm_ext import toolchain

        try:
            toolchain.usable_converter()
        except toolchain.ToolUnavailable as error:
            return str(error)
    return None


def _run(chosen: Sequence[Case]) -> tuple[Side, Side]:
    """Run the cases under a progress bar, which a terminal alone gets to see."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("loading executorch", total=2 * len(chosen))

        def report(name: str, outcome: Outcome) -> None:
            bar.update(task, advance=1, description=name)

        return run_both(chosen, report)


# What is printed


def _list(chosen: Sequence[Case]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(3):
        table.add_column(overflow="fold")
    table.add_row("program", "what it is", "targets", style="bold")
    for program, group in itertools.groupby(chosen, lambda case: case.program):
        targets = ", ".join(case.target for case in group)
        table.add_row(*map(Text, (program.name, program.summary, targets)))
    return table


_COLOUR = {Verdict.MET: "green", Verdict.OPEN: "yellow", Verdict.WORSE: "bold red"}


def _report(rows: Sequence[Row], verbose: bool, width: int) -> Group:
    parts: list[Any] = [*_tables(rows, width)]
    worse = [row for row in rows if row.verdict is Verdict.WORSE]
    if worse:
        parts += [Text("\nWorse than expected", style="bold")]
        parts += [_entry(row.case.name, "; ".join(row.shortfalls)) for row in worse]
    if reasons := _all_reasons(rows) if verbose else _main_reasons(rows):
        parts += [Text("\nLeft on the CPU, and why", style="bold"), *reasons]
    return Group(*parts)


def _tables(rows: Sequence[Row], width: int) -> Iterator[Text | Table]:
    """Yield a heading and a table for each gap, all with the same columns."""
    layout = _Layout.for_rows(rows, width)
    yield layout.table(["program", "target", "stock", "patched", ""], "bold")
    for gap, group in itertools.groupby(rows, lambda row: row.case.program.gap):
        yield Text.assemble(
            "\n", (gap.name, "bold"), f": {gap.title} ", (f"({gap.state})", "dim")
        )
        table = layout.table()
        program = None
        for row in group:
            new = row.case.program is not program
            program = row.case.program
            table.add_row(
                program.name.partition("/")[2] if new else "",
                row.case.target,
                _cell(row.stock, row.case),
                _cell(row.patched, row.case),
                Text(row.verdict.value, style=_COLOUR[row.verdict]),
            )
        yield table


@dataclass(frozen=True)
class _Layout:
    """The widths of the columns, in characters."""

    program: int
    target: int
    outcome: int
    verdict: int = 5

    @classmethod
    def for_rows(cls, rows: Sequence[Row], width: int) -> "_Layout":
        target = max(len(row.case.target) for row in rows)
        names = [row.case.program.name.partition("/")[2] for row in rows]
        program = min(max(map(len, names)), width // 4)
        rest = min(width, 160) - program - target - cls.verdict - 4 * 2
        return cls(program, target, rest // 2)

    def table(self, row: Sequence[str] = (), style: str = "") -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        for column in (self.program, self.target, self.outcome, self.outcome):
            table.add_column(width=column, overflow="fold")
        table.add_column(width=self.verdict)
        if row:
            table.add_row(*row, style=style)
        return table


def _cell(outcome: Outcome, case: Case) -> Text:
    if outcome.error is not None:
        return Text(outcome.error, style="red")
    parts = [_count(outcome.delegates or 0, "delegate")]
    if outcome.left:
        parts.append(f"{len(outcome.left)} on CPU")
    if outcome.difference is not None:
        parts.append(f"diff {outcome.difference:.2g}")
    if outcome.pte_bytes is not None:
        parts.append("pte")
    warns = case.expected.warns
    if warns and any(warns in warning for warning in outcome.warnings):
        parts.append("warns")
    if outcome.partition_seconds is not None and outcome.partition_seconds > 0.5:
        parts.append(f"partition {outcome.partition_seconds:.1f} s")
    return Text(", ".join(parts))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _entry(name: str, text: str) -> Padding:
    """Return an indented paragraph that starts with a bold name."""
    body = Text.assemble((name, "bold"), f": {text}", overflow="fold")
    return Padding(body, (0, 0, 0, 2))


_NOT_LISTED = "Not included in BaseTOSASupportList or a registered tosa_support_check"


def _main_reasons(rows: Sequence[Row]) -> list[Padding]:
    """Return one entry an op and first telling reason, patched side only."""
    where: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        for op in row.patched.left:
            places = where.setdefault((op.op, _main_reason(op)), {})
            places[row.case.name] = None
    return [
        line
        for (op, reason), places in where.items()
        for line in (_entry(op, reason), _places(places))
    ]


def _main_reason(op: Left) -> str:
    reasons = [without_schema(reason) for reason in op.reasons]
    specific = [reason for reason in reasons if reason != _NOT_LISTED]
    first = next(iter(specific or reasons), "no partitioner gave a reason")
    # The name of an input is of use in the graph alone.
    return re.sub(r"input \w+ that", "input that", first).rstrip(".")


def _all_reasons(rows: Sequence[Row]) -> list[Padding]:
    """Return every reason as the partitioner gave it, for each op on both sides."""
    lines = []
    for row in rows:
        for side, outcome in (("stock", row.stock), ("patched", row.patched)):
            for op in outcome.left:
                name = f"{row.case.name}, {side}: {op.op}"
                lines.append(_entry(name, f"{op.location}: {op.code}"))
                lines += [_places([reason]) for reason in op.reasons]
    return lines


def _places(places: Iterable[str]) -> Padding:
    """Return a dim paragraph that belongs to the entry above it."""
    text = Text(", ".join(places), style="dim", overflow="fold")
    return Padding(text, (0, 0, 0, 4))


def _summary(rows: Sequence[Row], patched: Side, seconds: float) -> Text:
    verdicts = [row.verdict for row in rows]
    stock = sum(not shortfalls(row.stock, row.case) for row in rows)
    parts = [
        f"{len(rows)} rows: {verdicts.count(Verdict.MET)} as expected with arm_ext "
        f"({stock} on stock)",
        f"{verdicts.count(Verdict.OPEN)} open",
        f"{verdicts.count(Verdict.WORSE)} worse",
        f"{seconds:.0f} s",
    ]
    skipped = [fix["fix"] for fix in patched.fixes if fix["state"] == "skipped"]
    text = f"\n{', '.join(parts)}"
    if skipped:
        text += f"\nFixes skipped: {', '.join(skipped)}; see `arm-ext status`"
    return Text(text)


def _as_json(rows: Sequence[Row], patched: Side) -> dict[str, Any]:
    installed = installed_versions()
    return {
        "schema": SCHEMA,
        "executorch": str(installed.executorch) if installed else None,
        "torch": str(installed.torch) if installed else None,
        "fixes": patched.fixes,
        "rows": [
            {
                "program": row.case.program.name,
                "target": row.case.target,
                "summary": row.case.program.summary,
                "section": row.case.program.gap.section,
                "fix": row.case.program.gap.fix,
                "control": row.case.is_control,
                "expected": dataclasses.asdict(row.case.expected),
                "stock": dataclasses.asdict(row.stock),
                "patched": dataclasses.asdict(row.patched),
                "verdict": row.verdict.value,
                "shortfalls": row.shortfalls,
            }
            for row in rows
        ],
    }
