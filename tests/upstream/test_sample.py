# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Upstream's own Arm tests give the result patched that they gave on stock.

``sample.txt`` pins one test of almost every file of the wheel's test tree
(three of the quantizer's) with its outcome on a stock executorch 1.5.1. Tests
that need a runtime which the wheel lacks (VGF), or that fail on stock, are not in
it.

"""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import executorch.backends.arm.test as upstream
import pytest

SAMPLE = Path(__file__).with_name("sample.txt").read_text().splitlines()
SHARDS = 6


def outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    return "xfailed" if skipped.get("type") == "pytest.xfail" else "skipped"


def key(case: ElementTree.Element) -> str:
    return f"{case.get('classname')}.{case.get('name')}"


def key_of(test_id: str) -> str:
    file, _, name = test_id.partition("::")
    return f"{file.removesuffix('.py').replace('/', '.')}.{name.replace('::', '.')}"


@pytest.mark.parametrize("shard", range(SHARDS))
def test_outcomes_equal_stock(shard, tmp_path):
    rows = [row.split(maxsplit=1) for row in SAMPLE[shard::SHARDS]]
    report = tmp_path / "report.xml"
    # Upstream's tests bring no configuration; ours must not reach them when the
    # environment lies inside this tree.
    alone = ["-c", os.devnull, "--rootdir=.", "-p", "no:cacheprovider"]
    options = ["-p", "arm_ext", *alone, "-q", f"--junitxml={report}"]
    # flatc, which some of them call, lies beside the interpreter.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(test_id for _, test_id in rows)],
        cwd=upstream.__path__[0],
        env={**os.environ, "PATH": path, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
    )
    assert report.is_file(), done.stdout + done.stderr
    cases = ElementTree.parse(report).getroot().iter("testcase")
    found = {key(case): outcome(case) for case in cases}
    stock = {key_of(test_id): result for result, test_id in rows}
    differing = {k: (v, found.get(k)) for k, v in stock.items() if found.get(k) != v}
    assert not differing, f"(stock, patched): {differing}\n{done.stdout[-4000:]}"
