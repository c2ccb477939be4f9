# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``arm-ext check``: the command, its table, its JSON and its exit status."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from arm_ext import toolchain
from arm_ext.cli import check, main
from arm_ext.programs import Case, cases, Expected, Gap, Left, Outcome, Program, workers
from arm_ext.programs.workers import Side, WorkerFailed
from rich.console import Console

CASES = {case.name: case for case in cases()}
GOOD = Outcome(delegates=1, difference=0.0, allowed=0.0, pte_bytes=10)
BAD = Outcome(error="ValueError: no kernel")
NOTHING_LEFT = Expected()


def row(patched=GOOD, stock=BAD, expected=NOTHING_LEFT, fix="guards-module"):
    gap = Gap(1, "gap", "a gap", fix)
    program = Program("gap/a-program", "What it is.", gap, lambda: None, ("vgf",))
    return check.Row(Case(replace(program, expected=expected), "vgf"), stock, patched)


def rendered(rows, width=80, verbose=False):
    console = Console(width=width, record=True, file=open(os.devnull, "w"))
    console.print(check._report(rows, verbose, width))
    console.print(check._summary(rows, Side(), 1.0))
    return console.export_text()


@pytest.fixture
def outcomes(monkeypatch):
    """Replaces the workers by given outcomes; the rest of the command is real."""

    def give(stock, patched):
        def run_both(chosen, report):
            sides = Side(), Side()
            for side, outcome in zip(sides, (stock, patched)):
                for case in chosen:
                    side.outcomes[case.name] = outcome
                    report(case.name, outcome)
            return sides

        monkeypatch.setattr(check, "run_both", run_both)

    return give


# One real run through both processes


@pytest.fixture(scope="module")
def real_run(tmp_path_factory):
    """One program for real: exit status, what was printed, what was written."""
    path = tmp_path_factory.mktemp("check") / "check.json"
    result = subprocess.run(
        [str(Path(sys.executable).with_name("arm-ext")), "check"]
        + ["--only", "preserved/pad-bf16", "--target", "vgf", "--json", str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    return result, json.loads(path.read_text())


def test_real_run_meets_the_expectation(real_run):
    result, _ = real_run
    assert result.returncode == 0, result.stdout + result.stderr
    assert "RuntimeError: Missing out" in result.stdout
    assert "1 rows: 1 as expected with arm_ext (0 on stock)" in result.stdout


def test_nothing_but_the_table_reaches_a_pipe(real_run):
    result, _ = real_run
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    for noise in ("Failed to load", "WARNING", "Warning", "━", "W1"):
        assert noise not in result.stdout
    assert all(len(line) <= 100 for line in result.stdout.splitlines())


def test_json(real_run):
    _, found = real_run
    assert found["schema"] == check.SCHEMA and found["executorch"] and found["torch"]
    assert {"fix", "state", "reason"} == set(found["fixes"][0])
    (only,) = found["rows"]
    assert only["program"] == "preserved/pad-bf16" and only["target"] == "vgf"
    assert only["section"] == 7 and only["fix"] == "preserved-op-consistency"
    assert only["verdict"] == "met" and only["shortfalls"] == []
    assert only["stock"]["error"].startswith("RuntimeError: Missing out variants")
    assert only["patched"]["pte_bytes"] > 0 and only["patched"]["difference"] == 0
    for op in only["patched"]["left"]:
        assert op["reasons"] and "preserved_ops.py:" in op["location"]


def test_status_prints_the_table_alone():
    command = str(Path(sys.executable).with_name("arm-ext"))
    result = subprocess.run([command, "status"], capture_output=True, text=True)
    assert result.returncode == 0 and result.stderr == ""
    assert result.stdout.startswith("fix ") and "applied" in result.stdout


# Exit status


def test_exit_status_1_when_worse_than_expected(outcomes, capsys):
    outcomes(stock=GOOD, patched=BAD)
    assert main(["check", "--only", "preserved/pad-bf16", "--target", "vgf"]) == 1
    out = capsys.readouterr().out
    assert "worse" in out and "ValueError: no kernel" in out


def test_open_gaps_do_not_fail_the_check(outcomes, capsys, monkeypatch):
    monkeypatch.setattr(check, "cases", lambda: [row(fix=None).case])
    outcomes(stock=BAD, patched=BAD)
    assert main(["check"]) == 0
    assert "1 open" in capsys.readouterr().out


def test_exit_status_2_when_it_cannot_run(monkeypatch, capsys):
    assert main(["check", "--only", "no-such-program"]) == 2
    assert "--list" in capsys.readouterr().err

    def unusable():
        raise toolchain.ToolUnavailable("The converter does not start: do this.")

    monkeypatch.setattr(toolchain, "usable_converter", unusable)
    assert main(["check", "--only", "index", "--target", "vgf"]) == 2
    assert "The converter does not start: do this." in capsys.readouterr().err

    monkeypatch.setattr(check, "installed_versions", lambda: None)
    assert main(["check", "--only", "index"]) == 2
    assert "pip install" in capsys.readouterr().err


def test_converter_is_not_needed_for_ethosu(monkeypatch, outcomes):
    def unusable():
        raise AssertionError("asked for a converter")

    monkeypatch.setattr(toolchain, "usable_converter", unusable)
    outcomes(stock=BAD, patched=GOOD)
    assert main(["check", "--only", "guards", "--target", "ethos-u85-256"]) == 0


def test_worker_that_does_not_load(monkeypatch, capsys):
    def run_both(chosen, report):
        raise WorkerFailed("the process ended with 1: ImportError: no torchao")

    monkeypatch.setattr(check, "run_both", run_both)
    assert main(["check", "--only", "guards", "--target", "ethos-u85-256"]) == 2
    assert "ImportError: no torchao" in capsys.readouterr().err


def test_unwritable_json_is_said_before_the_work(outcomes, capsys, tmp_path):
    path = str(tmp_path / "missing" / "check.json")
    assert main(["check", "--only", "guards", "--json", path]) == 2
    assert "missing" in capsys.readouterr().err


# Choice


def test_only_matches_gaps_and_programs():
    assert check._choose(["index"], None) == [
        case for case in CASES.values() if case.program.gap.name == "index"
    ]
    assert {c.program.name for c in check._choose(["pad-bf16"], None)} == {
        "preserved/pad-bf16",
        "preserved/pad-bf16-with-extension",
    }
    both = check._choose(["guards", "mish"], ["ethos-u55-128"])
    assert {c.program.gap.name for c in both} == {"guards", "mish"}
    assert {c.target for c in both} == {"ethos-u55-128"}
    assert check._choose(None, None) == list(CASES.values())


def test_list(capsys):
    assert main(["check", "--list", "--only", "mish"]) == 0
    out = capsys.readouterr().out
    assert "mish/conv-mish-conv" in out and "Conv1d, Mish, Conv1d." in out


def test_list_shows_brackets(capsys):
    assert main(["check", "--list", "--only", "index/list-in-the-code"]) == 0
    assert "x[:, [0, 2]]." in capsys.readouterr().out


# The table


@pytest.mark.parametrize("width", [80, 100, 140, 200])
def test_table_fits_the_width(width):
    rows = [
        check.Row(case, BAD, replace(GOOD, left=(Left("aten.topk.default", ("why",)),)))
        for case in CASES.values()
    ]
    text = rendered(rows, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_table_shows_both_sides():
    text = rendered([row()], 140)
    assert "ValueError: no kernel" in text
    assert "1 delegate, diff 0, pte" in text and "met" in text
    assert "gap: a gap (closed by guards-module)" in text


SCHEMA = "<EdgeOpOverload: aten.topk.default>: schema = aten::topk(Tensor x) -> Tensor"


def left_op(*reasons):
    return Left("aten.topk.default", reasons, "/models/m.py:3", "x.topk(2)")


def test_most_telling_reason_of_the_patched_side():
    reasons = check._NOT_LISTED, "Had input a_1 that is int.", f"{SCHEMA}: no."
    op = left_op(*reasons)
    rows = [row(replace(GOOD, left=(op,)), stock=replace(GOOD, left=(left_op("s"),)))]
    text = rendered(rows, 140)
    assert "aten.topk.default: Had input that is int" in text and "a_1" not in text
    assert "gap/a-program@vgf" in text
    assert check._main_reason(left_op(f"{SCHEMA}: no.")) == "aten.topk.default: no"
    assert check._main_reason(left_op(check._NOT_LISTED)) == check._NOT_LISTED


def test_verbose_gives_every_reason_of_both_sides():
    rows = [
        row(
            replace(GOOD, left=(left_op("first", "second"),)),
            stock=replace(GOOD, left=(left_op("only stock"),)),
        )
    ]
    text = rendered(rows, 140, verbose=True)
    for words in ("first", "second", "only stock", "/models/m.py:3: x.topk(2)"):
        assert words in text
    assert "only stock" not in rendered(rows, 140)


# Crash isolation


def fake_worker(tmp_path, body):
    """A worker that does what ``body`` says for each case."""
    path = tmp_path / "worker.py"
    path.write_text(
        "import json, os, signal, sys\n"
        "def say(record): print(json.dumps(record), flush=True)\n"
        "names = json.load(sys.stdin)\n"
        'say({"fixes": []})\n'
        "for name in names:\n"
        '    say({"start": name})\n'
        f"    {body}\n"
        '    say({"case": name, "outcome": {"delegates": 1, "left": [], '
        '"warnings": []}})\n'
    )
    return (sys.executable, str(path))


@pytest.mark.parametrize(
    "death, says",
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV"),
        ("os._exit(7)", "ended with 7: no message"),
        ("sys.exit('Vela: bad option')", "ended with 1: Vela: bad option"),
    ],
)
def test_a_crash_is_the_outcome_of_its_program_alone(
    tmp_path, monkeypatch, death, says
):
    chosen = list(CASES.values())[:4]
    dying = chosen[1].name
    body = f"if name == {dying!r}: {death}"
    monkeypatch.setattr(workers, "_WORKER", fake_worker(tmp_path, body))
    finished = []
    side = workers.run_side(
        chosen, patched=True, report=lambda name, outcome: finished.append(name)
    )
    assert finished == [case.name for case in chosen]
    assert says in side.outcomes[dying].error
    assert all(side.outcomes[c.name].error is None for c in chosen if c.name != dying)


def test_a_hanging_program_is_ended(tmp_path, monkeypatch):
    chosen = list(CASES.values())[:2]
    body = f"if name == {chosen[0].name!r}: import time; time.sleep(600)"
    monkeypatch.setattr(workers, "_WORKER", fake_worker(tmp_path, body))
    monkeypatch.setattr(workers, "TIMEOUT", 2.0)
    side = workers.run_side(chosen, patched=False)
    assert side.outcomes[chosen[0].name].error is not None
    assert side.outcomes[chosen[1].name].error is None


def test_a_worker_that_ends_at_once_is_an_error(monkeypatch):
    worker = (sys.executable, "-c", "raise SystemExit(3)")
    monkeypatch.setattr(workers, "_WORKER", worker)
    with pytest.raises(WorkerFailed, match="ended with 3"):
        workers.run_both(list(CASES.values())[:1])


def test_sides_differ_in_the_environment_alone(monkeypatch):
    monkeypatch.setenv("ARM_EXT", "0")
    assert "ARM_EXT" not in workers._environment(patched=True)
    assert workers._environment(patched=False)["ARM_EXT"] == "0"
