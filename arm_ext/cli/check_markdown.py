# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What ``arm-ext check`` found, as the two tables of README."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from arm_ext._table import markdown
from arm_ext.programs import Outcome, Policy, shortfalls

if TYPE_CHECKING:
    from arm_ext.cli.check import Row

TABLES = ("gaps", "policies")
_GAPS = ("section", "gap", "as expected on stock", "with arm_ext")
_POLICIES = ("policy", "part", "target", "stock", "with arm_ext")


def markers(name: str) -> tuple[str, str]:
    """Return the lines between which a table stands."""
    note = f"<!-- {name}: written by `arm-ext check --policies --markdown FILE` -->"
    return note, f"<!-- end of {name} -->"


def write(text: str, rows: Sequence[Row]) -> str:
    """Return a Markdown text with the tables of what was run between their markers."""
    for name, table in zip(TABLES, (gaps(rows), policies(rows)), strict=True):
        if not table:
            continue
        begin, end = markers(name)
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{table}{end}{rest.partition(end)[2]}"
    return text


def gaps(rows: Sequence[Row]) -> str:
    """Return the table of the sections of the report; empty where none was run."""
    listed = [row for row in rows if row.case.program.gap.section]
    listed.sort(key=lambda row: row.case.program.gap.section)
    return markdown(_GAPS, _gap_lines(listed)) if listed else ""


def _gap_lines(rows: Iterable[Row]) -> Iterator[tuple[str, ...]]:
    groups = itertools.groupby(rows, lambda row: row.case.program.gap)
    for gap, group in groups:
        cases = [row for row in group if not row.case.is_control]
        stock = sum(not shortfalls(row.stock, row.case) for row in cases)
        ours = sum(not row.shortfalls for row in cases)
        count = f"of {len(cases)}"
        yield str(gap.section), gap.title, f"{stock} {count}", f"{ours} {count}"


def policies(rows: Sequence[Row]) -> str:
    """Return the table of the policies, and what is left; empty where none was run."""
    listed = [row for row in rows if isinstance(row.case.program.gap, Policy)]
    if not listed:
        return ""
    left = "".join(map(_what_is_left, listed))
    return markdown(_POLICIES, map(_policy_line, listed)) + (
        f"\n{left}" if left else ""
    )


def _policy_line(row: Row) -> tuple[str, ...]:
    program = row.case.program
    part = program.name.partition("/")[2].replace("-", " ")
    target = {"vgf": "VGF FP32", "vgf-bf16": "VGF bf16"}.get(
        row.case.target, f"{row.case.target} INT8"
    )
    return program.gap.title, part, target, _cell(row.stock), _cell(row.patched)


def _cell(outcome: Outcome) -> str:
    if outcome.error is not None:
        return f"fails: {_short(outcome.error)}"
    return f"{outcome.delegates} / {len(outcome.left)}"


def _what_is_left(row: Row) -> str:
    """Return why ops are left, a line for each reason."""
    from arm_ext.cli.check import _main_reason

    found: dict[str, Counter[str]] = {}
    for left in row.patched.left:
        ops = found.setdefault(_main_reason(left), Counter())
        ops[left.op.rpartition(".")[0] or left.op] += 1
    policy, part, target, *_ = _policy_line(row)
    return "".join(
        f"- {policy}, {part}, {target}: {_names(ops)}. {_short(reason)}.\n"
        for reason, ops in found.items()
    )


def _names(ops: Counter[str]) -> str:
    return ", ".join(f"`{op}`" + (f" ({n})" if n > 1 else "") for op, n in ops.items())


def _short(text: str, width: int = 160) -> str:
    text = re.sub(r"\s+", " ", text).replace("|", "/").replace("<", "&lt;")
    return text if len(text) <= width else f"{text[:width].rpartition(' ')[0]} …"
