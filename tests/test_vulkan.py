# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Executing compiled VGFs: the numbers are those of the reference model."""

import numpy as np
import pytest
import torch
from arm_ext import toolchain, verify, vulkan
from arm_ext.targets import lower, quantize, TARGETS

needs_run = pytest.mark.skipif(
    vulkan.missing() is not None,
    reason="the run extra is not installed (README: Executing a compiled VGF): "
    f"{vulkan.missing()}",
)


class Mixed(torch.nn.Module):
    """Several inputs and outputs, whose order matters, of several dtypes."""

    def forward(self, a, b, count, mask):  # noqa: ANN001
        return a - b, count * 2, torch.where(mask, a, b), count > 3, a[0, 0]


class Subtract(torch.nn.Module):
    def forward(self, a, b):  # noqa: ANN001
        return a - b


def both(program, *inputs):  # noqa: ANN001
    """Return the flat outputs of the reference model and of the compiled VGF."""
    results = [verify.run(program, *inputs, vgf=how) for how in ("reference", "run")]
    return [[r] if isinstance(r, torch.Tensor) else list(r) for r in results]


@pytest.fixture
def calls(monkeypatch) -> list[list[str]]:
    """The commands started, to see that a VGF is really executed."""
    made: list[list[str]] = []
    call = vulkan._call

    def spy(command, folder, **env):  # noqa: ANN001
        made.append(command)
        return call(command, folder, **env)

    monkeypatch.setattr(vulkan, "_call", spy)
    return made


@needs_run
def test_float_is_eager_within_rounding(calls):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.GELU()).eval()
    x = torch.randn(1, 3, 8, 8)
    reference, executed = both(lower(model, (x,), TARGETS["vgf"]), x)
    assert "scenario.json" in calls[-1]
    torch.testing.assert_close(executed[0], reference[0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(executed[0], model(x).detach(), rtol=1e-5, atol=1e-6)


@needs_run
@pytest.mark.parametrize("quantization", ["int8", "a16w8"])
def test_integers_are_the_reference_model_s(quantization, calls):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Sigmoid()).eval()
    x = torch.randn(1, 3, 8, 8)
    target = TARGETS["vgf-int"]
    program = lower(quantize(model, (x,), target, quantization), (x,), target)
    reference, executed = both(program, x)
    assert "scenario.json" in calls[-1]
    assert torch.equal(executed[0], reference[0])


@needs_run
def test_inputs_and_outputs_keep_order_dtype_and_shape(calls):
    torch.manual_seed(0)
    inputs = (
        torch.randn(3, 4),
        torch.randn(3, 4),
        torch.arange(12, dtype=torch.int32).reshape(3, 4),
        torch.rand(3, 4) > 0.5,
    )
    _, executed = both(lower(Mixed(), inputs, TARGETS["vgf"]), *inputs)
    assert "scenario.json" in calls[-1]
    for ours, eager in zip(executed, Mixed()(*inputs), strict=True):
        assert ours.dtype == eager.dtype and ours.shape == eager.shape
        assert torch.equal(ours, eager)


@needs_run
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype, calls):
    inputs = (torch.tensor([1.5, -2.0, 3.25]).to(dtype), torch.ones(1).to(dtype))
    program = lower(Subtract(), inputs, TARGETS["vgf-bf16"])
    _, executed = both(program, *inputs)
    assert "scenario.json" in calls[-1]
    assert executed[0].dtype == dtype
    assert torch.equal(executed[0], Subtract()(*inputs))


@needs_run
def test_inputs_that_do_not_fit_are_named():
    program = lower(Subtract(), (torch.zeros(2, 3), torch.ones(2, 3)), TARGETS["vgf"])
    [delegate] = [
        module.vgf
        for module in verify.executable(program, vgf="run").modules()
        if isinstance(module, verify.CompiledDelegate)
    ]
    good, bad = np.zeros((2, 3), np.float32), np.zeros((2, 2), np.float32)
    with pytest.raises(RuntimeError, match="takes 2 inputs, not 1"):
        vulkan.run(delegate, [good])
    with pytest.raises(RuntimeError, match=r"input 1 .* \[2, 3\], not \[2, 2\]"):
        vulkan.run(delegate, [good, bad])
    with pytest.raises(RuntimeError, match="vgf_dump.* failed"):
        vulkan.run(b"not a VGF", [good])


def test_unknown_way_to_run():
    x = torch.zeros(2)
    program = lower(Subtract(), (x, torch.ones(2)), TARGETS["ethos-u85-256"])
    with pytest.raises(ValueError, match='"reference" or "run", not \'fast\''):
        verify.run(program, x, x, vgf="fast")


@pytest.mark.parametrize(
    ("absent", "says"),
    [
        ("scenario-runner", r"pip install 'executorch-arm-ext\[run\]'"),
        ("vgf_dump", r"pip install 'executorch-arm-ext\[run\]'"),
        ("emulation_layer", r"pip install 'executorch\[vgf\]'"),
        ("driver", "apt-get install libvulkan1 mesa-vulkan-drivers"),
        ("glibc", toolchain.SETUP_COMMAND),
    ],
)
def test_what_is_missing_is_named(absent, says, monkeypatch, tmp_path):
    def have(package: str, name: str):  # noqa: ANN202
        return None if name == absent else tmp_path

    monkeypatch.setattr(toolchain, "wheel_binary", have)
    monkeypatch.setattr(
        vulkan, "find_spec", lambda name: None if name == absent else name
    )
    monkeypatch.setattr(vulkan.ctypes.util, "find_library", lambda name: name)
    monkeypatch.setattr(vulkan, "_driver", lambda: "" if absent == "driver" else "x")
    monkeypatch.setattr(toolchain, "needs_private_glibc", lambda: absent == "glibc")
    monkeypatch.setattr(toolchain, "through_loader", lambda: [])
    with pytest.raises(toolchain.ToolUnavailable, match=says):
        vulkan.run(b"", [])
