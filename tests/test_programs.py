# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The reference programs are as expected with arm_ext, and were not without."""

import inspect
from dataclasses import replace

import arm_ext
import pytest
import torch
from arm_ext.fix import TABLE
from arm_ext.programs import (
    Case,
    cases,
    Expected,
    Flow,
    Gap,
    Outcome,
    Program,
    PROGRAMS,
    runner,
    shortfalls,
    workers,
)
from arm_ext.programs._program import Left
from arm_ext.targets import QUANTIZATION, TARGETS

CASES = cases()
# A time is for `arm-ext check` to judge: a test would depend on the machine.
CLOSED = [
    case
    for case in CASES
    if not case.is_open and case.expected.partition_seconds is None
]


def named(chosen):
    return pytest.mark.parametrize("case", chosen, ids=lambda case: case.name)


@pytest.fixture(scope="module")
def outcomes(request):
    """Stock and patched outcomes of the cases that this session asks for.

    In two processes at once, as ``arm-ext check`` runs them: half the time, and
    a crash of one program on stock does not end the tests.

    """
    wanted = {
        item.callspec.params["case"].name
        for item in request.session.items
        if item.module is request.module and "case" in getattr(item, "fixturenames", ())
    }
    stock, patched = workers.run_both([c for c in CASES if c.name in wanted])
    return stock.outcomes, patched.outcomes


@named(CLOSED)
def test_patched_is_as_expected(case, outcomes):
    assert shortfalls(outcomes[1][case.name], case) == []


@named(CLOSED)
def test_stock_is_not(case, outcomes):
    """... unless the program is there to show what stock does as well."""
    assert bool(shortfalls(outcomes[0][case.name], case)) is not case.is_control


@named(CLOSED)
def test_every_op_left_has_a_reason(case, outcomes):
    assert all(op.reasons for op in outcomes[1][case.name].left)


def first_of_each_gap():
    seen = {}
    for case in CLOSED:
        if not case.is_control:
            seen.setdefault(case.program.gap, case)
    return list(seen.values())


@named(first_of_each_gap())
def test_revert_brings_the_failure_back_in_this_process(case):
    assert shortfalls(runner.run(case), case) == []
    with arm_ext.patched(only=()):
        assert shortfalls(runner.run(case), case) != []
    assert shortfalls(runner.run(case), case) == []


def test_names_are_unique_and_everything_named_exists():
    names = [program.name for program in PROGRAMS]
    assert len(set(names)) == len(names)
    fixes = {fix.name for fix in TABLE}
    for program in PROGRAMS:
        assert program.gap.fix is None or program.gap.fix in fixes
        assert program.summary and program.targets
        assert set(program.targets) <= set(TARGETS)
        assert set(program.on) <= set(program.targets)
        assert program.quantization in QUANTIZATION


def test_every_section_of_the_report_has_programs():
    assert {program.gap.section for program in PROGRAMS} >= set(range(1, 8))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_programs_run_eagerly_and_repeat(program):
    def outputs():
        torch.manual_seed(0)
        module, inputs = program.build()
        assert not module.training
        return module(*inputs)

    if program.flow is not Flow.PARTITION:
        assert runner.difference(outputs(), outputs()) == 0.0


# What counts as worse


GOOD = Outcome(delegates=1, difference=0.0, allowed=0.0, pte_bytes=10)
NOTHING_LEFT = Expected()


def case_for(expected=NOTHING_LEFT, **options):
    program = Program("gap/p", "", Gap(0, "gap", ""), lambda: None, ("vgf",), **options)
    return Case(replace(program, expected=expected), "vgf")


def test_good_outcome_has_no_shortfall():
    assert shortfalls(GOOD, case_for()) == []


@pytest.mark.parametrize(
    "change, says",
    [
        ({"delegates": 0}, "0 delegates, expected 1"),
        ({"delegates": 2}, "2 delegates, expected 1"),
        ({"left": (Left("aten.topk.default"),)}, "on the CPU: aten.topk.default"),
        ({"difference": 1e-9}, "difference 1e-09, allowed 0.0"),
        ({"difference": None}, "difference None"),
        ({"pte_bytes": None}, "no .pte"),
        ({"error": "ValueError: no"}, "ValueError: no"),
    ],
)
def test_shortfalls_say_what_is_worse(change, says):
    (found,) = shortfalls(replace(GOOD, **change), case_for())
    assert says in found


def test_allowed_ops_are_counted():
    one = case_for(Expected(cpu_ops=("a", "b")))
    assert shortfalls(replace(GOOD, left=(Left("b"),)), one) == []
    assert shortfalls(replace(GOOD, left=(Left("b"), Left("b"))), one) == [
        "on the CPU: b"
    ]


def test_expected_warning_and_time():
    told = case_for(Expected(warns="+bf16"))
    assert shortfalls(GOOD, told) == ["no warning says '+bf16'"]
    assert shortfalls(replace(GOOD, warnings=("use FP+bf16",)), told) == []
    fast = case_for(Expected(partition_seconds=0.5))
    assert shortfalls(replace(GOOD, partition_seconds=0.4), fast) == []
    (slow,) = shortfalls(replace(GOOD, partition_seconds=9.0), fast)
    assert "9.0 s" in slow


def test_partitioned_only_needs_no_numbers():
    case = case_for(flow=Flow.PARTITION)
    assert shortfalls(Outcome(delegates=1), case) == []


def test_delegate_where_none_was_expected_is_no_loss():
    assert shortfalls(GOOD, case_for(Expected(delegates=0))) == []


# The comparison


NAN = torch.tensor([1.0, float("nan"), float("inf")])


def test_difference():
    a = {"x": torch.tensor([1.0, 2.0]), "y": (NAN,)}
    b = {"x": torch.tensor([1.0, 2.5]), "y": (NAN,)}
    assert runner.difference(a, b) == 0.5
    assert runner.difference(torch.tensor([]), torch.tensor([])) == 0.0
    assert runner.difference(torch.tensor([2**40]), torch.tensor([2**40 + 1])) == 1.0
    assert runner.difference(torch.tensor([True]), torch.tensor([False])) == 1.0


@pytest.mark.parametrize(
    "wanted, got, says",
    [
        (NAN, NAN.nan_to_num(), "NaN or infinity"),
        (torch.zeros(2), torch.zeros(3), "shape"),
        (torch.zeros(2), torch.zeros(2, dtype=torch.int32), "dtype"),
        ((torch.zeros(2),), [torch.zeros(2)], "outputs"),
        ((torch.zeros(2),), (), "outputs"),
    ],
)
def test_difference_refuses(wanted, got, says):
    with pytest.raises(AssertionError, match=says):
        runner.difference(wanted, got)


def test_first_line_is_that_of_the_root():
    try:
        try:
            raise ValueError("root\nmore")
        except ValueError as root:
            raise RuntimeError("outer") from root
    except RuntimeError as error:
        assert runner.first_line(error) == "ValueError: root"
    assert runner.first_line(SystemExit(1)) == "SystemExit: 1"


def test_guards_are_there_whatever_the_path():
    """torch leaves guards out below a folder named executorch."""
    case = next(c for c in CASES if c.program.flow is Flow.GUARDS)
    source = inspect.getsource(runner._prepare)
    namespace = {}
    code = compile(inspect.cleandoc(source), "/venv/executorch/run.py", "exec")
    exec(code, vars(runner) | {"__name__": "x"}, namespace)
    torch.manual_seed(0)
    module, inputs = case.program.build()
    prepared = namespace["_prepare"](case, module, inputs, TARGETS[case.target])
    assert prepared(*inputs).shape == module(*inputs).shape
