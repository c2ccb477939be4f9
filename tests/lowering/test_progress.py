# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The progress bar shows on a terminal, for many partitions, and nowhere else."""

import io
import sys

import pytest
from arm_ext.lowering import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def open_terminal(monkeypatch):
    """Pytest sets stderr itself between a fixture and its test."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def lower(programs):
    return {
        method: [program * 2 for program, _ in zip(elements, elements)]
        for method, elements in programs.items()
    }


MANY = {"encode": list(range(15)), "decode": list(range(5))}


def test_bar_over_all_methods(monkeypatch):
    terminal = open_terminal(monkeypatch)
    assert progress.show(MANY, lower) == lower(MANY)
    assert "Lowering partitions" in terminal.getvalue()


def test_counts_partitions(monkeypatch):
    open_terminal(monkeypatch)
    counts = []
    advance = progress.Progress.advance
    monkeypatch.setattr(
        progress.Progress,
        "advance",
        lambda self, task: counts.append(task) or advance(self, task),
    )
    progress.show(MANY, lambda programs: [list(p) for p in programs.values()])
    assert len(counts) == 20


def test_lists_stay_lists(monkeypatch):
    open_terminal(monkeypatch)

    def check(programs):
        assert isinstance(programs["encode"], list)
        assert len(programs["encode"]) == 15
        assert programs["encode"][3] == 3

    progress.show(MANY, check)


def test_few_partitions_show_nothing(monkeypatch):
    terminal = open_terminal(monkeypatch)
    few = {"forward": list(range(19))}
    assert progress.show(few, lambda programs: programs) is few
    assert terminal.getvalue() == ""


def test_no_terminal_shows_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert progress.show(MANY, lambda programs: programs) is MANY
    assert sys.stderr.getvalue() == ""


def test_failure_ends_the_bar(monkeypatch):
    terminal = open_terminal(monkeypatch)

    def fail(programs):
        raise RuntimeError("no compiler today")

    with pytest.raises(RuntimeError, match="no compiler today"):
        progress.show(MANY, fail)
    assert "\x1b[?25h" in terminal.getvalue()  # the cursor is shown again
