# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The tree passes the linters of ExecuTorch with its settings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPO = Path(__file__).resolve().parent.parent


def run(*command, **variables) -> None:
    """Run a linter over the tree; what it finds is the message of the failure."""
    found = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=REPO,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    if found.returncode:
        pytest.fail(found.stdout + found.stderr, pytrace=False)


def test_flake8():
    run("flake8")


def test_ufmt():
    """Formatted by black, imports sorted by usort."""
    run("ufmt", "--quiet", "check", ".")


def test_mypy(tmp_path):
    """On a tree of links, as mypy knows nothing of setuptools' package-dir."""
    setup = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = setup["package-dir"].copy()
    package = tmp_path / "arm_ext"
    package.mkdir()
    for path in (REPO / folders.pop("arm_ext")).iterdir():
        (package / path.name).symlink_to(path)
    for name, folder in folders.items():
        (package / name.removeprefix("arm_ext.")).symlink_to(REPO / folder)
    run("mypy", MYPYPATH=str(tmp_path))
