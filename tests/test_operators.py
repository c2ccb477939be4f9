# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The operator rows, and the file that is generated from them."""

from pathlib import Path

import pytest
import torch
from arm_ext import operators
from arm_ext.cli import main
from arm_ext.fix import Fix, TABLE
from arm_ext.operators import Operator

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "operators.md"


def test_the_document_is_what_the_code_generates():
    """Renew it with ``arm-ext operators --markdown > docs/operators.md``."""
    assert DOCUMENT.read_text() == operators.markdown()


def test_every_op_exists_and_every_source_is_a_pass():
    for row, operator in operators.operators():
        namespace, _, name = operator.op.partition(".")
        assert namespace == "aten" and hasattr(torch.ops.aten, name), row.name
        assert "passes" in operator.source.__module__, operator.source


def test_rows_follow_the_table():
    names = [row.name for row in TABLE]
    found = [names.index(row.name) for row, _ in operators.operators()]
    assert found == sorted(found)


def test_a_cell_cannot_break_the_table():
    assert not any("|" in cell or "\n" in cell for r in operators.rows() for cell in r)


@pytest.mark.parametrize(
    ("dtypes", "targets", "message"),
    [
        (("fp8",), ("VGF",), "aten.mish: dtypes must be .* not fp8"),
        (("int8",), ("vgf",), "aten.mish: targets must be .* not vgf"),
        (("int8",), (), "targets must be .* not empty"),
    ],
)
def test_a_typing_error_is_named(dtypes, targets, message):
    with pytest.raises(ValueError, match=message):
        Operator("aten.mish", dtypes, targets, "none", object)


def test_command(capsys):
    assert main(["operators", "--markdown"]) == 0
    assert capsys.readouterr().out == operators.markdown()
    assert main(["operators"]) == 0
    assert "limits" in capsys.readouterr().out


def test_command_says_which_fix_does_not_load(capsys, monkeypatch):
    def load(self):
        raise ImportError("no module named 'moved'")

    monkeypatch.setattr(Fix, "load", load)
    assert main(["operators"]) == 2
    assert "does not load: no module named 'moved'" in capsys.readouterr().err
