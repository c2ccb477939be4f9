# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Errors name the pass, and a bad Ethos-U target is an exception."""

import arm_ext
import pytest
import torch
from arm_ext.targets import lower, quantize, Target, TARGETS
from executorch.backends.arm._passes.decompose_linear_pass import DecomposeLinearPass

LINEAR = torch.nn.Linear(4, 4).eval()
X = torch.randn(1, 4)


def error_of_a_broken_pass(monkeypatch, **fixes):
    def broken(self, *args, **kwargs):
        raise ValueError("broken on purpose")

    monkeypatch.setattr(DecomposeLinearPass, "call", broken)
    with arm_ext.patched(**fixes), pytest.raises(Exception) as raised:
        lower(LINEAR, (X,), TARGETS["vgf"])
    return str(raised.value)


def test_the_pass_goes_by_its_own_name(monkeypatch):
    message = error_of_a_broken_pass(monkeypatch, disable=["lowering-fallback"])
    assert "DecomposeLinearPass" in message
    assert "_ExportedProgramGraphPassAdapter" not in message


def test_stock_names_the_adapter(monkeypatch):
    message = error_of_a_broken_pass(monkeypatch, only=())
    assert "DecomposeLinearPass" not in message


def to_misspelt_target():
    program = quantize(LINEAR, (X,), TARGETS["ethos-u85-256"])
    return lower(program, (X,), Target("ethos-u85-300"))


def test_a_misspelt_target_is_an_exception_that_names_it():
    with arm_ext.patched():
        with pytest.raises(ValueError, match="ethos-u85-300.*'ethos-u85-256'"):
            to_misspelt_target()


def test_stock_leaves_python():
    with arm_ext.patched(only=()), pytest.raises(SystemExit):
        to_misspelt_target()
