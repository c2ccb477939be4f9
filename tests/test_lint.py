# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The tree passes the linters of ExecuTorch with its settings."""

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent


def run(*command) -> None:
    """Run a linter over the tree; what it finds is the message of the failure."""
    found = subprocess.run(
        [sys.executable, "-m", *command], cwd=REPO, capture_output=True, text=True
    )
    if found.returncode:
        pytest.fail(found.stdout + found.stderr, pytrace=False)


def test_flake8():
    run("flake8")


def test_ufmt():
    """Formatted by black, imports sorted by usort."""
    run("ufmt", "--quiet", "check", ".")
