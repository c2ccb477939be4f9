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
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arm_ext._table import markdown
from arm_ext.programs import (
    Case,
    cases,
    Gap,
    Outcome,
    POLICIES,
    Policy,
    PROGRAMS,
    shortfalls,
)

if TYPE_CHECKING:
    from arm_ext.cli.check import Row

TABLES = ("gaps", "policies")
_GAPS = ("section", "gap", "as expected on stock", "with arm_ext")
_POLICIES = ("policy", "part", "target", "stock", "with arm_ext")
_TARGETS = {"vgf": "VGF FP32", "vgf-bf16": "VGF bf16"}


def markers(name: str) -> tuple[str, str]:
    """Return the lines between which a table stands."""
    note = f"<!-- {name}: written by `arm-ext check --policies --markdown FILE` -->"
    return note, f"<!-- end of {name} -->"


def write(text: str, rows: Sequence[Row]) -> str:
    """Return a Markdown text with what was run in the tables between their markers.

    A line that is there stays if it was not run, one of the gaps also if not all of
    its programs were, and goes if there is no such program any more.

    """
    for name, table in zip(TABLES, (gaps, policies), strict=True):
        begin, end = markers(name)
        before, _, rest = text.partition(begin)
        old, _, after = rest.partition(end)
        if new := table(rows, old):
            text = f"{before}{begin}\n{new}{end}{after}"
    return text


@dataclass(frozen=True)
class _Line:
    """A line of a table.

    Attributes:
        key (tuple[str, ...]): The columns that name what was run.
        found (tuple[str, ...]): The columns that say what became of it.
        notes (tuple[str, ...]): What the list below the table says of it.

    """

    key: tuple[str, ...]
    found: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """How its notes begin."""
        return f"- {', '.join(self.key)}: "


def _table(header: Sequence[str], lines: Sequence[_Line]) -> str:
    notes = [f"{line.name}{note}\n" for line in lines for note in line.notes]
    rows = ((*line.key, *line.found) for line in lines)
    return markdown(header, rows) + "".join(["\n", *notes] if notes else [])


def _kept(text: str, new: Sequence[_Line], keys: Sequence[tuple[str, ...]]) -> list:
    """Return ``new`` and the lines of a text that it does not replace, in order."""
    lines = {line.key: line for line in _read(text, len(keys[0])) if line.key in keys}
    lines.update((line.key, line) for line in new)
    place = {key: number for number, key in enumerate(keys)}
    return sorted(lines.values(), key=lambda line: place.get(line.key, len(place)))


def _read(text: str, named: int) -> Iterator[_Line]:
    """Yield the lines of a table whose first ``named`` columns are the key."""
    for row in text.splitlines():
        if row.startswith("|"):
            cells = tuple(re.split(r" ?\| ?", row)[1:-1])
            line = _Line(cells[:named], cells[named:])
            notes = (n for n in text.splitlines() if n.startswith(line.name))
            yield _Line(
                line.key, line.found, tuple(n.removeprefix(line.name) for n in notes)
            )


# The gaps


def gaps(rows: Sequence[Row], old: str = "") -> str:
    """Return the table of the sections of the report; empty where none was run.

    Args:
        rows (Sequence[Row]): What was run. A gap has a line if all of it was.
        old (str): Such a table. Its other lines are kept.

    """
    if not (lines := _gap_lines(rows)):
        return ""
    known = dict.fromkeys(p.gap for p in PROGRAMS if p.gap.section)
    keys = [_gap_key(gap) for gap in sorted(known, key=lambda gap: gap.section)]
    return _table(_GAPS, _kept(old, lines, keys))


def _gap_key(gap: Gap) -> tuple[str, ...]:
    return str(gap.section), gap.title


def _gap_lines(rows: Sequence[Row]) -> list[_Line]:
    listed = sorted(
        (row for row in rows if row.case.program.gap.section),
        key=lambda row: row.case.program.gap.section,
    )
    groups = itertools.groupby(listed, lambda row: row.case.program.gap)
    counted = ((gap, list(group)) for gap, group in groups)
    return [_gap_line(gap, group) for gap, group in counted if _is_whole(gap, group)]


def _is_whole(gap: Gap, rows: Iterable[Row]) -> bool:
    of_gap = {case.name for case in cases() if case.program.gap == gap}
    return of_gap <= {row.case.name for row in rows}


def _gap_line(gap: Gap, rows: Iterable[Row]) -> _Line:
    shown = [row for row in rows if not row.case.is_control]
    stock = sum(not shortfalls(row.stock, row.case) for row in shown)
    ours = sum(not row.shortfalls for row in shown)
    count = f"of {len(shown)}"
    return _Line(_gap_key(gap), (f"{stock} {count}", f"{ours} {count}"))


# The policies


def policies(rows: Sequence[Row], old: str = "") -> str:
    """Return the table of the policies, and what is left; empty where none was run.

    Args:
        rows (Sequence[Row]): What was run.
        old (str): Such a table. Its other lines are kept.

    """
    listed = [row for row in rows if isinstance(row.case.program.gap, Policy)]
    if not listed:
        return ""
    keys = [policy_key(case) for case in cases(POLICIES)]
    return _table(_POLICIES, _kept(old, [*map(_policy_line, listed)], keys))


def policy_key(case: Case) -> tuple[str, ...]:
    """Return policy, part and target of a case as the table names them."""
    program = case.program
    part = program.name.partition("/")[2].replace("-", " ")
    target = _TARGETS.get(case.target, f"{case.target} INT8")
    return program.gap.title, part, target


def _policy_line(row: Row) -> _Line:
    cells = _cell(row.stock), _cell(row.patched)
    return _Line(policy_key(row.case), cells, tuple(_what_is_left(row)))


def _cell(outcome: Outcome) -> str:
    if outcome.error is not None:
        return f"fails: {_plain(outcome.error)}"
    return f"{outcome.delegates} / {len(outcome.left)}"


def _what_is_left(row: Row) -> Iterator[str]:
    """Yield the ops that are left for a reason, and that reason."""
    from arm_ext.cli.check import _main_reason

    found: dict[str, Counter[str]] = {}
    for left in row.patched.left:
        ops = found.setdefault(_main_reason(left), Counter())
        ops[left.op.rpartition(".")[0] or left.op] += 1
    for reason, ops in found.items():
        yield f"{_names(ops)}. {_plain(reason)}."


def _names(ops: Counter[str]) -> str:
    return ", ".join(f"`{op}`" + (f" ({n})" if n > 1 else "") for op, n in ops.items())


def _plain(text: str) -> str:
    """Return a text that breaks neither a table nor the page."""
    return re.sub(r"\s+", " ", text).replace("|", "/").replace("<", "&lt;")
