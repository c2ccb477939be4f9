# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A VGF lowering on a machine where the model converter does not start."""

import arm_ext
import pytest
import torch
from arm_ext import toolchain
from arm_ext.fix import State
from arm_ext.targets import lower, TARGETS

FIX = "model-converter"
INPUTS = (torch.arange(6.0).reshape(2, 3),)


class Add(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x


def payload() -> bytes:
    program = lower(Add(), INPUTS, TARGETS["vgf"])
    return program.to_executorch().buffer


@pytest.fixture
def too_new(tmp_path, monkeypatch) -> None:
    """A converter that fails the way the wheel's does on an older glibc."""
    path = tmp_path / "model-converter"
    path.write_text(
        "#!/bin/sh\n"
        'echo "$0: version \\`GLIBCXX_3.4.32\' not found (required by $0)" >&2\n'
        "exit 1\n"
    )
    path.chmod(0o755)
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(path))


def test_stock_ends_in_a_loader_trace(too_new):
    with arm_ext.patched(only=()), pytest.raises(RuntimeError) as error:
        payload()
    assert "Vgf compiler failed" in str(error.value)
    assert "GLIBCXX" in str(error.value)


def test_patched_says_it_in_one_sentence(too_new):
    with arm_ext.patched(only=[FIX]) as status:
        assert [row.state for row in status if row.fix == FIX] == [State.APPLIED]
        with pytest.raises(toolchain.ToolUnavailable) as error:
            payload()
    assert "newer C library" in str(error.value)
    assert "GLIBCXX" not in str(error.value) and "\n" not in str(error.value)


@pytest.fixture
def no_converter_named(monkeypatch) -> None:
    """An environment that is not activated and names no converter."""
    monkeypatch.delenv("MODEL_CONVERTER_PATH", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def test_stock_does_not_find_the_wheel(no_converter_named):
    with arm_ext.patched(only=()):
        with pytest.raises(RuntimeError, match="Unable to locate a model converter"):
            payload()


def test_patched_lowers_and_changes_no_byte(no_converter_named, monkeypatch):
    with arm_ext.patched(only=[FIX]):
        ours = payload()
    converter = toolchain.usable_converter()
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(converter))
    with arm_ext.patched(only=()):
        assert payload() == ours


def test_converter_that_starts_is_left_alone(tmp_path, monkeypatch):
    good = tmp_path / "model-converter"
    good.write_text("#!/bin/sh\nexit 0\n")
    good.chmod(0o755)
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(good))
    with arm_ext.patched(only=[FIX]) as status:
        [row] = [row for row in status if row.fix == FIX]
    assert row.state is State.UPSTREAM and str(good) in row.reason


def test_converter_set_up_after_the_import_is_found(too_new, no_converter_named):
    from executorch.backends.arm.vgf import model_converter

    with arm_ext.patched(only=[FIX]):
        found = model_converter.require_model_converter_executable()
        assert found == toolchain.usable_converter()
        assert model_converter.find_model_converter_binary() == str(found)
        assert model_converter.check_model_converter_environment().ok
