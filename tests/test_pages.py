# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The page of a fix has what is written beside its code."""

from pathlib import Path

from arm_ext import cli
from arm_ext.fix import TABLE
from arm_ext.pages import _markdown, pages
from arm_ext.upstream.changes import CHANGES, why_not

STORED = Path(__file__).resolve().parent.parent / "docs/fixes"


def test_each_fix_has_a_page():
    made = pages()
    assert list(made) == [fix.name for fix in TABLE]
    for fix in TABLE:
        text = made[fix.name]
        assert text.startswith(f"# {fix.name}\n")
        assert "``" not in text and "::\n" not in text
        assert fix.name in CHANGES or why_not(fix) in text


def test_page_of_mish():
    page = pages()["mish"]
    headings = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    assert headings == [
        "The gap",
        "What is done",
        "What is refused",
        "DecomposeMishPass",
        "Limits",
        "Upstream",
    ]
    assert "    x -> mish -> y" in page  # the graph, as a block of code
    assert "| aten.mish | fp32, fp16, bf16 | VGF |" in page


def test_command_writes_them(tmp_path, capsys):
    assert cli.main(["pages", str(tmp_path / "new")]) == 0
    written = {path.stem for path in (tmp_path / "new").iterdir()}
    assert written == {fix.name for fix in TABLE}
    assert f"{len(written)} pages" in capsys.readouterr().out


def test_stored_pages_are_the_generated_ones():
    """`arm-ext pages docs/fixes` writes them again."""
    stored = {path.stem: path.read_text() for path in STORED.iterdir()}
    assert stored == pages()


def test_markdown():
    text = "Calls :func:`~a.b` with ``x``::\n\n    x -> y\n"
    assert _markdown(text) == "Calls `a.b` with `x`:\n\n    x -> y\n"
