# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""BUCK lists the tree, and CMake configures and installs it."""

import ast
import os
import shutil
import subprocess
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
FOLDERS = (
    "arm_ext",
    "benchmarks",
    "lowering",
    "partitioner",
    "passes",
    "quantizer",
    "tests",
)


def targets() -> dict[str, dict]:
    """Return the arguments of each target; Starlark is Python to this extent."""
    found = {}
    for statement in ast.parse((REPO / "BUCK").read_text()).body:
        call = statement.value
        if call.func.id == "fbcode_target":
            kinds = [k for k in call.keywords if k.arg != "_kind"]
            arguments = {k.arg: ast.literal_eval(k.value) for k in kinds}
            arguments["kind"] = next(
                ast.unparse(k.value) for k in call.keywords if k.arg == "_kind"
            )
            assert arguments["name"] not in found
            found[arguments["name"]] = arguments
    return found


def test_every_source_is_in_one_target():
    tree = {
        str(path.relative_to(REPO))
        for folder in FOLDERS
        for path in (REPO / folder).rglob("*.py")
    }
    listed = Counter(s for target in targets().values() for s in target.get("srcs", ()))
    assert tree - listed.keys() == set(), "not in BUCK"
    assert listed.keys() - tree == set(), "in BUCK, but not in the tree"
    assert [source for source, count in listed.items() if count > 1] == []


def test_lists_are_sorted_and_resources_exist():
    for target in targets().values():
        srcs = target.get("srcs", [])
        assert srcs == sorted(srcs), target["name"]
        for resource in target.get("resources", ()):
            assert (REPO / resource).is_file(), resource


def test_test_files_are_named_as_buck_demands():
    (tests,) = (t for t in targets().values() if t["kind"] == "python_pytest")
    allowed = ("test_*.py", "*_test.py", "conftest.py")
    for source in tests["srcs"]:
        assert any(fnmatch(Path(source).name, pattern) for pattern in allowed), source


def test_dependencies_inside_the_file_exist():
    known = targets()
    for target in known.values():
        for dependency in target["deps"]:
            if dependency.startswith(":"):
                assert dependency[1:] in known, dependency


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    folder = tmp_path_factory.mktemp("build")
    interpreter = f"-DPython3_EXECUTABLE={sys.executable}"
    run("cmake", "-S", REPO, "-B", folder, interpreter)
    return folder


def run(*command, **options):
    return subprocess.run(
        list(map(str, command)), check=True, capture_output=True, text=True, **options
    ).stdout


def test_ctest_runs_the_tests(build):
    """One test file, in the environment that CMake makes where it is not there."""
    if Path(sys.prefix) != REPO / ".venv":
        pytest.skip("the tests run in another environment than the one of CMake")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    run("cmake", build, "-DARM_EXT_TESTS=tests/test_bootstrap.py")
    run("cmake", "--build", build, env=environment)
    said = run("ctest", "--test-dir", build, "--verbose", env=environment)
    assert " passed" in said and "100% tests passed" in said


def test_cmake_installs_what_pip_installs(build, tmp_path):
    run("cmake", "--install", build, "--prefix", tmp_path)
    code = (
        "import arm_ext, arm_ext.partitioner, arm_ext.passes.index_ops, "
        "arm_ext.quantizer, arm_ext.api.manifest as m; "
        "print(arm_ext.__file__, len(m.read(m.RUNNING)) > 0)"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "ARM_EXT": "0"}
    said = run(sys.executable, "-c", code, env=environment, cwd=tmp_path)
    assert said.split() == [str(tmp_path / "arm_ext" / "__init__.py"), "True"]
