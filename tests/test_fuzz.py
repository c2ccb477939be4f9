# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Random programs lower right or say why not; and what the fuzzer itself finds."""

import os

import arm_ext
import pytest
import torch
from arm_ext import fuzz
from arm_ext.cli import main


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


@pytest.mark.parametrize("seed", range(5))
def test_a_random_program(seed):
    program = fuzz.generate(seed)
    what = fuzz.check_apart(program)
    assert what is None or fuzz.why_known(fuzz.Finding(program, what)), program


def program(*expressions, **options):
    steps = tuple(fuzz.Step(text, i + 1, 0) for i, text in enumerate(expressions))
    defaults = {"target": "vgf-fp", "quantization": None, "dtype": torch.float32}
    return fuzz.Program(0, (2, 3), steps=steps, **{**defaults, **options})


def test_a_seed_gives_one_program_that_runs():
    programs = [fuzz.generate(seed) for seed in range(30)]
    assert programs == [fuzz.generate(seed) for seed in range(30)]
    assert len({p.target for p in programs}) > 3
    for one in programs:
        outputs = one.module()(*one.inputs())
        again = one.module()(*one.inputs())
        assert all(map(torch.equal, outputs, again))


def test_operations_are_valid():
    """Each is drawn by some shape and dtype: none of them is dead."""
    shapes = [(3,), (2, 3), (2, 4, 4), (1, 2, 4, 4)]
    for kind, expressions in fuzz.OPERATIONS.items():
        dtype = torch.int32 if kind == "integer" else torch.float32
        for text in expressions:
            steps = (fuzz.Step(text, 0, 1),)
            tried = (
                fuzz.Program(0, shape, dtype, steps, "vgf", None) for shape in shapes
            )
            assert any(map(fuzz._is_sound, tried)), text


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"target": "ethos-u85-256", "quantization": "int8"}, 4),
        ({"dtype": torch.float16}, 8),
        ({"dtype": torch.bfloat16, "target": "vgf-bf16"}, 8),
    ],
)
def test_an_error_of_some_steps_is_found(options, steps, monkeypatch):
    """Of an output's scale, or of the last digit of its format at its size."""
    one = program("x + 1.5", "tanh(x)", **options)
    assert fuzz.check(one) is None
    size = 1 / 127 if one.quantization else torch.finfo(one.dtype).eps
    run = fuzz.verify.run
    monkeypatch.setattr(
        fuzz.verify, "run", lambda *a: [x + 3 * steps * size for x in run(*a)]
    )
    assert "wrong by" in fuzz.check(one)


def test_a_dynamic_dimension(monkeypatch):
    one = program("x * y", "tanh(x)", dynamic=True)
    assert fuzz.check(one) is None
    lower, seen = fuzz.lower, []
    monkeypatch.setattr(
        fuzz,
        "lower",
        lambda *a, **options: seen.append(options) or lower(*a, **options),
    )
    assert fuzz.check(one) is None and "dynamic_shapes" in seen[0]


def test_the_smallest_program_has_the_ops_that_are_needed():
    finding = fuzz.Finding(program("x + 1.5", "sin(x)", "x * 2", "cos(x)"), "E: 1")

    def check(smaller):
        texts = {step.expression for step in smaller.steps}
        return "E: 2" if {"sin(x)", "cos(x)"} <= texts else None

    smallest = fuzz.smallest(finding, check)
    assert [s.expression for s in smallest.program.steps] == ["sin(x)", "cos(x)"]
    assert smallest.kind == finding.kind


def test_a_finding_is_written_as_a_program(monkeypatch, tmp_path, capfd):
    found = iter([None, fuzz.Finding(program("sin(x)"), "RuntimeError: no")])
    monkeypatch.setattr(fuzz, "findings", lambda seconds, seed: found)
    assert main(["fuzz", "--seconds", "1", "--directory", str(tmp_path)]) == 1
    out = capfd.readouterr().out
    assert "RuntimeError: no" in out and "2 programs" in out
    (path,) = tmp_path.iterdir()
    names = {}
    exec(path.read_text().replace("print(", "("), names)
    assert names["program"] == program("sin(x)")


def test_wrong_numbers_and_errors_are_found(monkeypatch):
    two = program("sin(x)")
    run = fuzz.verify.run
    monkeypatch.setattr(
        fuzz.verify, "run", lambda *a: [x + 0.1 for x in run(*a)], raising=True
    )
    assert "wrong by 0.1" in fuzz.check(two)
    monkeypatch.setattr(fuzz, "lower", lambda *a: 1 / 0)
    assert fuzz.check(two) == "ZeroDivisionError: division by zero"


def test_a_crash_is_found(monkeypatch):
    monkeypatch.setattr(fuzz, "check", lambda program: os._exit(3))
    assert "ends with 3" in fuzz.check_apart(program("sin(x)"))


def test_a_process_that_computed_in_threads_can_be_forked(monkeypatch):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        big = torch.ones(1 << 20)
        big.exp()
        monkeypatch.setattr(fuzz, "check", lambda program: str(big.exp().numel()))
        monkeypatch.setattr(fuzz, "_SECONDS", 20)
        assert fuzz.check_apart(program("sin(x)")) == str(1 << 20)
    finally:
        torch.set_num_threads(threads)
