# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What is installed, from the metadata, the wheel and the constraints."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

REPO = Path(__file__).resolve().parent.parent
DISTRIBUTION = "executorch-arm-ext"
# Folder of the tree: the package that it installs as.
MAPPED = {
    "arm_ext": "arm_ext",
    "benchmarks": "arm_ext/benchmarks",
    "lowering": "arm_ext/lowering",
    "partitioner": "arm_ext/partitioner",
    "passes": "arm_ext/passes",
    "quantizer": "arm_ext/quantizer",
}
TESTED = ("executorch", "run", "test", "policies")
PYTHONS = ("3.10", "3.11", "3.12", "3.13")


def sources() -> set[str]:
    """Return the files that an installation has, as named in it."""
    return {
        f"{package}/{path.relative_to(REPO / folder)}"
        for folder, package in MAPPED.items()
        for path in (REPO / folder).rglob("*")
        if path.suffix in (".py", ".toml")
    }


def requirements(extra: str) -> list[Requirement]:
    """Return what the base install ("") or one extra asks for."""
    parsed = map(Requirement, importlib.metadata.requires(DISTRIBUTION))
    chosen = []
    for requirement in parsed:
        marker = str(requirement.marker or "")
        if marker == (f'extra == "{extra}"' if extra else ""):
            chosen.append(requirement)
    return chosen


# The base install


def test_base_install_cannot_move_torch_or_executorch():
    base = {requirement.name: requirement for requirement in requirements("")}
    assert set(base) == {"torch", "wrapt", "rich", "packaging"}
    for requirement in base.values():
        assert {clause.operator for clause in requirement.specifier} == {">="}
        assert not requirement.extras and not requirement.url


def test_extras():
    extras = importlib.metadata.metadata(DISTRIBUTION).get_all("Provides-Extra")
    assert set(extras) == {"bench", "executorch", "policies", "run", "test"}
    [executorch] = [r for r in requirements("executorch") if r.name == "executorch"]
    assert executorch.extras == {"vgf", "ethos-u"}
    assert "1.5.1" in executorch.specifier and "1.5.2" not in executorch.specifier


def test_run_extra_does_not_conflict_with_executorch_s_pins():
    ours = {canonical(r.name) for r in requirements("run")}
    pinned = map(Requirement, importlib.metadata.requires("executorch"))
    theirs = {canonical(r.name) for r in pinned if r.marker and "vgf" in str(r.marker)}
    assert ours and theirs and not ours & theirs


# The wheel and the editable install


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    tree = tmp_path_factory.mktemp("tree")
    for folder in MAPPED:
        shutil.copytree(
            REPO / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPO / file, tree)
    # The build tool is here already: torch needs setuptools.
    command = [sys.executable, "-m", "pip", "wheel", str(tree), "--no-deps", "--quiet"]
    command += ["--no-build-isolation", "--wheel-dir", str(tree / "out")]
    subprocess.run(command, check=True)
    [built] = (tree / "out").glob("*.whl")
    return built


def test_wheel_holds_every_source_file_and_no_other(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {n for n in names if ".dist-info/" not in n} == sources()


def test_wheel_installs_the_command_and_the_mapped_packages(wheel, tmp_path):
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*command, "--target", str(tmp_path), str(wheel)], check=True)
    program = (
        "import arm_ext, arm_ext.cli, arm_ext.passes, arm_ext.partitioner, "
        "arm_ext.quantizer as q; print(arm_ext.__file__, q.__file__)"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "ARM_EXT": "0"}
    found = subprocess.run(
        [sys.executable, "-c", program],
        env=env,
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert all(Path(file).is_relative_to(tmp_path) for file in found), found
    assert (tmp_path / "bin" / "arm-ext").is_file()


def test_passes_could_be_moved_upstream_unchanged():
    for path in (REPO / "passes").rglob("*.py"):
        assert not re.search(r"^\s*(import|from) arm_ext", path.read_text(), re.M), path


# The constraints


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(python: str) -> dict[str, Version]:
    """Return the pinned version of each package for one version of Python."""
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "platform_machine": "x86_64",
        "platform_system": "Linux",
        "sys_platform": "linux",
    }
    found: dict[str, Version] = {}
    for line in (REPO / "constraints.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        requirement = Requirement(line)
        if requirement.marker and not requirement.marker.evaluate(environment):
            continue
        [clause] = requirement.specifier
        assert clause.operator == "==", line
        assert canonical(requirement.name) not in found, f"{line} is pinned twice"
        found[canonical(requirement.name)] = Version(clause.version)
    return found


@pytest.mark.parametrize("python", PYTHONS)
def test_everything_the_tested_set_names_is_pinned_and_fits(python):
    pinned = pins(python)
    for extra in ("", *TESTED):
        for requirement in requirements(extra):
            version = pinned[canonical(requirement.name)]
            assert version in requirement.specifier, requirement


@pytest.mark.parametrize("python", PYTHONS)
def test_pins_satisfy_executorch(python):
    pinned = pins(python)
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    environment |= {"platform_system": "Linux", "platform_machine": "x86_64"}
    for extra in ("", "vgf", "ethos-u"):
        for requirement in map(Requirement, importlib.metadata.requires("executorch")):
            marker = requirement.marker
            if marker and not marker.evaluate({**environment, "extra": extra}):
                continue
            version = pinned[canonical(requirement.name)]
            assert version in requirement.specifier, requirement
