# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Fixes written into the tree of the installed wheel work there without arm_ext."""

import filecmp
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from arm_ext import cli
from arm_ext.fix import TABLE
from arm_ext.upstream.change import Checkout, Hunk, Refused
from arm_ext.upstream.changes import CHANGES, REFUSED, why_not

WHEEL = Path(importlib.util.find_spec("executorch").submodule_search_locations[0])
ARM = "backends/arm"

# What a change may write to, and a copy of the wheel has as files of its own.
WRITTEN = (ARM, "devtools", "exir")

# Runs pytest on copies of the wheel, with no arm_ext to be imported. What a copy does
# not change is imported once, in the parent of one process for each of them.
ALONE = """
import importlib, json, os, sys
sys.modules["arm_ext"] = None
import executorch, pytest, torch
from torchao.quantization.pt2e import quantize_pt2e
options = ["-c", "/dev/null", "--rootdir=.", "-p", "no:cacheprovider", "-q", "-p", "no:logging"]

def run(root, tests, log):
    if os.fork() == 0:
        for stream in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        executorch.__path__ = [root]
        if backends := sys.modules.get("executorch.backends"):
            backends.__path__ = [root + "/backends"]
        os.chdir(root + "/backends/arm/test")
        arm = importlib.import_module("executorch.backends.arm")
        assert arm.__path__[0].startswith(root)
        status = pytest.main([*options, *tests])
        sys.stdout.flush()
        os._exit(status)
    os.wait()

with_their_exir, others = json.load(sys.stdin)
assert "executorch.exir" not in sys.modules
for job in with_their_exir:
    run(*job)
from executorch import exir
assert "executorch.backends.arm" not in sys.modules
for job in others:
    run(*job)
"""


def copy_of_the_wheel(folder):
    """An executorch with files of its own where changes go; all else is the wheel's."""
    root = folder / "executorch"
    (root / "backends").mkdir(parents=True)
    for source in (*WHEEL.iterdir(), *(WHEEL / "backends").iterdir()):
        path = source.relative_to(WHEEL)
        if path.name != "__pycache__" and str(path) not in ("backends", *WRITTEN):
            (root / path).symlink_to(source)
    for path in WRITTEN:
        shutil.copytree(WHEEL / path, root / path)  # with what is compiled of it
    return root


@pytest.fixture
def checkout(tmp_path):
    return copy_of_the_wheel(tmp_path)


def changes_exir(checkout):
    """Whether a copy has files of exir that the wheel has not, or has otherwise."""
    for file in (checkout / "exir").rglob("*.py"):
        theirs = WHEEL / file.relative_to(checkout)
        if not theirs.is_file() or not filecmp.cmp(file, theirs):
            return True
    return False


def run(jobs):
    """Run the tests of each checkout; return what pytest said of each."""
    logs = [c.parent / f"log{number}" for number, (c, _) in enumerate(jobs)]
    with_their_exir, others = [], []
    for (checkout, tests), log in zip(jobs, logs):
        work = with_their_exir if changes_exir(checkout) else others
        work.append((str(checkout), tests, str(log)))
    # Vela lies beside the interpreter.
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    subprocess.run(
        [sys.executable, "-c", ALONE],
        env={"PATH": path, "OMP_NUM_THREADS": "1"},
        input=json.dumps((with_their_exir, others)),
        text=True,
        check=True,
    )
    return [log.read_text() for log in logs]


def assert_passed(said):
    summary = said.splitlines()[-1]
    assert " passed" in summary and "failed" not in summary, said[-3000:]
    assert "error" not in summary, said[-3000:]


def write(checkout, *options):
    return cli.main(["upstream", "--checkout", str(checkout), *options])


# What runs with each fix alone, on the reference model. Of a test with several data,
# one runs alone and the others with all together.
ADDED = {
    "mish": ["ops/test_mish.py::test_mish_tosa_INT[rank1]"],
    "conv-transpose1d": [
        "ops/test_transpose_conv1d.py::test_conv_transpose1d_tosa_INT[stride]",
        "ops/test_transpose_conv1d.py::test_conv_transpose1d_tosa_FP[dilation]",
    ],
    "isnan-isinf-fmod": [
        "ops/test_isnan_isinf.py::test_isnan_tosa_FP[special]",
        "ops/test_fmod.py::test_fmod_tosa_FP[rank1]",
    ],
    "roll-and-triangle": [
        "ops/test_roll.py::test_roll_tosa_INT[rank2]",
        "ops/test_triu.py::test_triu_tosa_INT[rank2]",
    ],
    "float-to-int-cast": [
        "ops/test_float_cast.py::test_float_cast_tosa_FP[float16_int8]"
    ],
    "float-accuracy": ["ops/test_float_accuracy.py::test_float_accuracy_tosa_FP"],
    "neg-scale": ["ops/test_neg_scale.py::test_neg_scale_tosa_INT[negative]"],
    "where-number": ["ops/test_where_number.py::test_where_number_tosa_INT[rank2]"],
    "strided-norm": ["ops/test_strided_norm.py::test_strided_norm_tosa_INT[rank4]"],
    "annotation-symint": ["quantizer/test_dynamic_shapes.py"],
    "no-grad-regions": ["quantizer/test_no_grad.py"],
    "slice-writes": ["ops/test_slice_writes.py::test_slice_writes_tosa_INT[rank2]"],
    "guards-module": ["quantizer/test_guards.py"],
    "unquantized-model": ["misc/test_unquantized_warning.py"],
    "spec-drops-dtype": ["misc/test_extension_warning.py"],
    "ethosu-sram": ["misc/test_sram_warning.py"],
    "partitioner": ["misc/test_linear_partitioner.py"],
    "delegate-boundary": ["misc/test_delegate_boundary.py"],
}
# What Vela compiles with all together; upstream's pipeline then calls the simulator,
# and expects to fail where there is none. The pipelines of Vulkan need a runner too.
COMPILED = [
    "ops/test_mish.py::test_mish_u55_INT[rank1]",
    "ops/test_transpose_conv1d.py::test_conv_transpose1d_u85_INT[stride]",
    "ops/test_triu.py::test_triu_u85_INT[rank2]",
    "ops/test_where_number.py::test_where_number_u85_INT[rank2]",
    "ops/test_slice_writes.py::test_slice_writes_u85_INT[rank2]",
]
# Parts of the neighbours that the changes are most like.
NEIGHBOURS = [
    "ops/test_silu.py::test_silu_tosa_INT",
    "ops/test_tril.py::test_tril_tosa_INT",
]


def added():
    """Return the files of tests that the changes write, from the folder of tests."""
    tests = [test for change in CHANGES.values() for test in change.tests]
    return [test if "/" in test else f"ops/{test}" for test in tests]


def all_changes():
    tree = Checkout(WHEEL)
    for change in CHANGES.values():
        change.apply(tree)
    return tree.changed


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What the tests say of each fix alone, and of all together."""
    assert all(path.startswith(WRITTEN) for path in all_changes())
    jobs = []
    for fix, tests in ADDED.items():
        checkout = copy_of_the_wheel(tmp_path_factory.mktemp(fix))
        assert write(checkout, "--fix", fix) == 0
        jobs.append((checkout, tests))
    checkout = copy_of_the_wheel(tmp_path_factory.mktemp("all"))
    assert write(checkout) == 0
    ran = [test for tests in ADDED.values() for test in tests if "[" in test]
    options = ["-k", "tosa or warns", *(f"--deselect={test}" for test in ran)]
    jobs.append((checkout, [*options, *added(), *NEIGHBOURS]))
    jobs.append((checkout, COMPILED))
    return dict(zip((*ADDED, "all", "compiled"), run(jobs)))


@pytest.mark.parametrize("fix", CHANGES)
def test_fix_alone(fix, outcomes):
    assert_passed(outcomes[fix])


def test_all_together_beside_their_neighbours(outcomes):
    assert_passed(outcomes["all"])


def test_vela_compiles_what_a_simulator_would_run(outcomes):
    summary = outcomes["compiled"].splitlines()[-1]
    assert f" {len(COMPILED)} xfailed" in f" {summary}", outcomes["compiled"][-3000:]


def test_files_are_those_that_the_plugin_runs(checkout):
    assert write(checkout, "--fix", "mish") == 0
    import arm_ext.passes.decompose_mish_pass as ours

    theirs = checkout / ARM / "_passes/decompose_mish_pass.py"
    assert theirs.read_text() == Path(ours.__file__).read_text()


def test_nothing_of_ours_is_imported():
    assert [p for p, text in all_changes().items() if "arm_ext." in text] == []


# What is refused


def test_hunk_without_its_line_is_refused_and_nothing_written(checkout, capsys):
    path = checkout / ARM / "quantizer/quantizer_support.py"
    path.write_text(path.read_text().replace("silu_", "silu__"))
    assert write(checkout, "--fix", "mish") == 1
    output = capsys.readouterr().out
    assert (
        "mish: refused" in output and f"{ARM}/quantizer/quantizer_support.py" in output
    )
    assert "is there 0 times" in output
    assert not (checkout / ARM / "_passes/decompose_mish_pass.py").exists()


def test_every_part_that_does_not_fit_is_named():
    tree = Checkout(WHEEL)
    CHANGES["mish"].apply(tree)
    with pytest.raises(Refused) as refused:
        CHANGES["mish"].apply(tree)
    assert str(refused.value).count("already") == 1 + len(CHANGES["mish"].hunks)


def test_what_is_no_change_says_why(capsys):
    names = [fix.name for fix in TABLE]
    assert set(CHANGES) | set(REFUSED) <= set(names)
    assert not set(CHANGES) & set(REFUSED)
    for fix in TABLE:
        if fix.name in ("topk", "argmin-argmax", "multimethod"):
            assert write(WHEEL, "--fix", fix.name, "--dry-run") == 1
            assert why_not(fix) in capsys.readouterr().out
    assert write(WHEEL, "--fix", "nothing") == 2


def test_another_folder_is_no_checkout(tmp_path, capsys):
    assert write(tmp_path) == 2
    assert "no executorch checkout" in capsys.readouterr().err


def test_dry_run_prints_a_diff_that_git_applies(checkout, capsys):
    assert write(checkout, "--dry-run") == 0
    diff = capsys.readouterr().out
    assert not (checkout / ARM / "_passes/decompose_mish_pass.py").exists()
    command = ["git", "apply", "--check", "-"]
    subprocess.run(command, cwd=checkout, input=diff, text=True, check=True)


def test_a_branch_and_a_commit_for_each_fix(tmp_path):
    def git(*arguments):
        command = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", *arguments]
        run = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        assert run.returncode == 0
        return run.stdout

    for path in WRITTEN:
        shutil.copytree(
            WHEEL / path, tmp_path / path, ignore=shutil.ignore_patterns("__pycache__")
        )
    git("init", "-q", "-b", "main")
    git("config", "user.name", "A")
    git("config", "user.email", "a@b.c")
    git("add", "-A", "-f")
    git("commit", "-q", "-m", "base")
    assert write(tmp_path, "--branch") == 0
    assert git("rev-parse", "--abbrev-ref", "HEAD").strip() == "main"
    assert not git("status", "--porcelain")
    for fix, change in CHANGES.items():
        log = git("log", "--format=%s", f"main..arm-ext-{fix}").splitlines()
        assert log == [f"Arm backend: {change.title}"]


def test_hunk_refuses_a_file_that_is_not_there():
    with pytest.raises(Refused, match="there is no such file"):
        Hunk("nowhere.py", "a", "b").apply(Checkout(WHEEL))
