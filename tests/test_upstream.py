# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Fixes written into the tree of the installed wheel work there without arm_ext."""

import importlib.util
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

# Runs pytest with the copied backend, and with no arm_ext to be imported.
ALONE = """
import sys
sys.modules["arm_ext"] = None
import executorch.backends.arm, pytest
assert executorch.backends.arm.__path__[0].startswith(sys.argv[1])
options = ["-c", "/dev/null", "--rootdir=.", "-p", "no:cacheprovider", "-q"]
sys.exit(pytest.main([*options, *sys.argv[2:]]))
"""


@pytest.fixture
def checkout(tmp_path):
    """An executorch with an Arm backend of its own; all else is the wheel's."""
    root = tmp_path / "executorch"
    (root / "backends").mkdir(parents=True)
    for source in (*WHEEL.iterdir(), *(WHEEL / "backends").iterdir()):
        if source.name not in ("backends", "arm", "__pycache__"):
            (root / source.relative_to(WHEEL)).symlink_to(source)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(WHEEL / ARM, root / ARM, ignore=ignore)
    return root


def run(checkout, *tests):
    result = subprocess.run(
        [sys.executable, "-c", ALONE, str(checkout), *tests],
        cwd=checkout / ARM / "test",
        env={"PATH": "", "PYTHONPATH": str(checkout.parent), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    return result.stdout


def write(checkout, *options):
    return cli.main(["upstream", "--checkout", str(checkout), *options])


# The tests on the reference model; those of Corstone and Vulkan need a runner.
ADDED = {
    "mish": ["ops/test_mish.py", "ops/test_silu.py::test_silu_tosa_INT"],
    "conv-transpose1d": ["ops/test_transpose_conv1d.py"],
    "isnan-isinf-fmod": ["ops/test_isnan_isinf.py", "ops/test_fmod.py"],
    "roll-and-triangle": ["ops/test_roll.py", "ops/test_triu.py"],
    "float-to-int-cast": ["ops/test_float_cast.py"],
}


@pytest.mark.parametrize("fix", CHANGES)
def test_fix_alone(fix, checkout):
    assert write(checkout, "--fix", fix) == 0
    assert " passed" in run(checkout, "-k", "tosa", *ADDED[fix])


def test_all_together_beside_their_neighbours(checkout):
    assert write(checkout) == 0
    added = [test for tests in ADDED.values() for test in tests]
    quick = "tosa and (rank1 or rank2 or special or rank4_ones)"
    neighbours = ("ops/test_remainder.py", "ops/test_tril.py")
    assert " passed" in run(checkout, "-k", quick, *added, *neighbours)


def test_files_are_those_that_the_plugin_runs(checkout):
    assert write(checkout, "--fix", "mish") == 0
    import arm_ext.passes.decompose_mish_pass as ours

    theirs = checkout / ARM / "_passes/decompose_mish_pass.py"
    assert theirs.read_text() == Path(ours.__file__).read_text()


def test_nothing_of_ours_is_imported():
    tree = Checkout(WHEEL)
    for change in CHANGES.values():
        change.apply(tree)
    assert [p for p, text in tree.changed.items() if "arm_ext." in text] == []


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
        if fix.name in ("topk", "argmin-argmax", "partitioner"):
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

    shutil.copytree(
        WHEEL / ARM, tmp_path / ARM, ignore=shutil.ignore_patterns("__pycache__")
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
