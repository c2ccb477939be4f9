# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The tables that ``arm-ext check`` writes into README."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from arm_ext.cli import check, check_markdown, main
from arm_ext.programs import (
    cases,
    Gap,
    Left,
    Outcome,
    POLICIES,
    Policy,
    Program,
    PROGRAMS,
)
from arm_ext.programs.workers import Side

README = Path(__file__).resolve().parent.parent / "README.md"
GOOD = Outcome(delegates=1, difference=0.0, allowed=0.0, pte_bytes=10)
FLOAT64 = Left("aten.sin.default", ("TOSA has no float64.",))
LEFT = replace(GOOD, left=(FLOAT64, FLOAT64, Left("aten.cat.default", ("|",))))
BAD = Outcome(error="ValueError: no | kernel")


def row(gap, stock=BAD, patched=GOOD, name="part-one"):
    program = Program(f"{gap.name}/{name}", "What.", gap, lambda: None, ("vgf",))
    return check.Row(cases([program])[0], stock, patched)


GAP = row(Gap(2, "index", "an index stays", "fix"))
POLICY = row(Policy("act", "ACT"), LEFT, LEFT)


def test_gaps_are_counted_by_section():
    rows = [row(Gap(7, "late", "late")), GAP, GAP, row(Gap(0, "own", "own"))]
    assert check_markdown.gaps(rows).splitlines()[2:] == [
        "| 2 | an index stays | 0 of 2 | 2 of 2 |",
        "| 7 | late | 0 of 1 | 1 of 1 |",
    ]
    assert check_markdown.gaps([POLICY]) == ""


def test_policies_say_what_is_left_and_why():
    text = check_markdown.policies([POLICY, GAP])
    assert "| ACT | part one | VGF FP32 | 1 / 3 | 1 / 3 |" in text
    assert "- ACT, part one, VGF FP32: `aten.sin` (2). TOSA has no float64.\n" in text
    assert "fails: ValueError: no / kernel" in check_markdown.policies(
        [row(Policy("act", "ACT"))]
    )


def test_tables_are_written_between_their_markers(tmp_path):
    marks = [check_markdown.markers(name) for name in check_markdown.TABLES]
    text = "".join(f"{begin}\nold\n{end}\n" for begin, end in marks)
    written = check_markdown.write(f"before\n{text}after\n", [POLICY])
    assert written.startswith("before\n") and written.endswith("after\n")
    assert written.count("old") == 1 and "| ACT | part one" in written
    assert check_markdown.write(written, [POLICY]) == written


def test_file_without_a_place_is_said_before_the_work(tmp_path, capsys):
    path = tmp_path / "x.md"
    for make in (lambda: None, lambda: path.write_text("nothing")):
        make()
        assert main(["check", "--only", "mish", "--markdown", str(path)]) == 2
        assert str(path) in capsys.readouterr().err


def test_lines_of_what_was_not_run_stay():
    everything = [check.Row(case, BAD, LEFT) for case in cases(POLICIES)]
    whole = check_markdown.policies(everything)
    assert check_markdown.policies(everything[2:4], whole) == whole
    again = check_markdown.policies([replace(everything[2], patched=GOOD)], whole)
    changed = check_markdown.policies(
        [*everything[:2], replace(everything[2], patched=GOOD), *everything[3:]]
    )
    assert again == changed != whole
    # A line that is new takes its place, and one of no program goes.
    stale = whole.replace("| ACT | whole model |", "| ACT | of old |")
    assert check_markdown.policies(everything[:2], stale) == whole


def test_gap_that_was_run_in_part_keeps_its_line():
    everything = [check.Row(case, BAD, GOOD) for case in cases(PROGRAMS)]
    whole = check_markdown.gaps(everything)
    of_gap = [row for row in everything if row.case.program.gap.section == 2]
    worse = [replace(row, patched=BAD) for row in of_gap]
    assert check_markdown.gaps(worse[:-1], whole) == ""
    changed = check_markdown.gaps(worse, whole)
    (line,) = set(changed.splitlines()) - set(whole.splitlines())
    count = sum(not row.case.is_control for row in of_gap)
    assert line.startswith("| 2 |") and line.endswith(f"| 0 of {count} |")
    assert len(changed.splitlines()) == len(whole.splitlines())


def test_command_says_what_it_left_as_it_was(tmp_path, capsys, monkeypatch):
    path = tmp_path / "README.md"
    path.write_text(README.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(check, "run_both", _all_good)
    monkeypatch.setattr(check, "_missing", lambda chosen: None)
    assert main(["check", "--only", "act", "--markdown", str(path)]) == 0
    assert "not run; their lines are as they were" in capsys.readouterr().out
    before = README.read_text(encoding="utf-8").splitlines()
    new = set(path.read_text(encoding="utf-8").splitlines()) - set(before)
    assert new and all(line.startswith("| ACT | whole model |") for line in new)


def _all_good(chosen, report):
    return [Side({case.name: GOOD for case in chosen}) for _ in range(2)]


# README is as the programs are


def table(name):
    begin, end = check_markdown.markers(name)
    text = README.read_text(encoding="utf-8")
    assert text.count(begin) == 1 and text.count(end) == 1
    inside = text.partition(begin)[2].partition(end)[0]
    lines = [line for line in inside.splitlines() if line.startswith("|")]
    return [re.split(r" ?\| ?", line)[1:-1] for line in lines]


def test_readme_has_rows_of_each_policy_in_order():
    header, _, *rows = table("policies")
    assert header == ["policy", "part", "target", "stock", "with arm_ext"]
    known = [list(check_markdown.policy_key(case)) for case in cases(POLICIES)]
    assert [line for line in known if line in [found[:3] for found in rows]] == [
        found[:3] for found in rows
    ]
    assert all(re.fullmatch(r"\d+ / \d+", found[4]) for found in rows)


def test_readme_counts_the_programs_of_each_gap():
    everything = [check.Row(case, BAD, GOOD) for case in cases(PROGRAMS)]
    wanted = check_markdown.gaps(everything).splitlines()[2:]
    counted = [re.split(r" ?\| ?", line)[1:-2] for line in wanted]
    found = table("gaps")[2:]
    assert [line[:3] for line in found] == counted
    for *_, stock, ours in found:
        total = stock.removeprefix("0 of ")
        assert ours == f"{total} of {total}"


@pytest.mark.parametrize("program", POLICIES, ids=lambda program: program.name)
def test_names(program):
    assert program.summary and isinstance(program.gap, Policy)
