# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""LeRobot's policies: built from lerobot's own classes, and lowered whole."""

import sys

import pytest
import torch
from arm_ext.cli import main
from arm_ext.programs import cases, policies, POLICIES, PROGRAMS, runner, shortfalls
from arm_ext.programs.policies import _lerobot, _torchvision

MISSING = policies.missing()
needs_lerobot = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
LEFT_OUT = ("lerobot", "datasets", "diffusers", "torchvision", "accelerate")


@needs_lerobot
@pytest.mark.parametrize("program", POLICIES, ids=lambda program: program.name)
def test_parts_are_built_and_repeat(program):
    def outputs():
        torch.manual_seed(0)
        module, inputs = program.build()
        assert not module.training
        with torch.no_grad():
            return module(*inputs)

    first = outputs()
    assert runner.difference(first, outputs()) == 0.0
    for output in torch.utils._pytree.tree_leaves(first):
        assert output.isfinite().all() and output.std() > 0 or output.numel() == 1


@needs_lerobot
@pytest.mark.parametrize("target", ["vgf", "ethos-u85-256"])
def test_decoder_is_one_delegate(target):
    (case,) = [
        case for case in cases(POLICIES) if case.name == f"vqbet/decode@{target}"
    ]
    assert shortfalls(runner.run(case), case) == []


@needs_lerobot
def test_what_is_imported_later_is_all_of_lerobot():
    _lerobot.load("policies.act.modeling_act")
    assert not [n for n in sys.modules if n.split(".")[0] in LEFT_OUT]
    assert not [f for f in sys.meta_path if isinstance(f, _lerobot._StandIns)]


@needs_lerobot
def test_classes_are_lerobots_own():
    act = _lerobot.load("policies.act.modeling_act")
    assert act is _lerobot.load("policies.act.modeling_act")
    assert act.ACT.__module__ == "lerobot.policies.act.modeling_act"
    assert "site-packages" in act.__file__ or "lerobot" in act.__file__
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        _lerobot.load("policies.no_such")


def test_without_lerobot_it_is_said_how_to_get_it(monkeypatch, capsys):
    find = _lerobot.find_spec
    monkeypatch.setattr(
        _lerobot, "find_spec", lambda name: None if name == "lerobot" else find(name)
    )
    assert main(["check", "--only", "act", "--target", "ethos-u85-256"]) == 2
    said = capsys.readouterr().err
    assert "need lerobot" in said and "pip install --no-deps lerobot==" in said
    with pytest.raises(ModuleNotFoundError, match="need lerobot"):
        _lerobot.load("policies.act.modeling_act")


def test_plain_check_runs_no_policy():
    names = {program.name for program in PROGRAMS}
    assert names.isdisjoint(program.name for program in POLICIES)
    assert all(not case.is_open for case in cases(POLICIES))


# What stands for torchvision


@pytest.mark.parametrize("make", [_torchvision.resnet18, _torchvision.resnet34])
def test_residual_network_has_torchvisions_layers(make):
    torch.manual_seed(0)
    model = make(norm_layer=_torchvision.FrozenBatchNorm2d).eval()
    names = [name for name, _ in model.named_children()]
    assert names[:4] == ["conv1", "bn1", "relu", "maxpool"]
    assert names[4:] == ["layer1", "layer2", "layer3", "layer4", "avgpool", "fc"]
    getter = _torchvision.IntermediateLayerGetter(model, {"layer4": "out"})
    x = torch.rand(2, 3, 64, 64)
    assert getter(x)["out"].shape == (2, 128, 2, 2)
    assert model(x).shape == (2, 1000)


def test_frozen_norm_and_crop():
    frozen, norm = _torchvision.FrozenBatchNorm2d(4), torch.nn.BatchNorm2d(4).eval()
    state = {name: torch.rand(4) + 0.5 for name in frozen.state_dict()}
    frozen.load_state_dict(state)
    norm.load_state_dict(state, strict=False)
    x = torch.rand(2, 4, 5, 6)
    torch.testing.assert_close(frozen(x), norm(x))
    assert torch.equal(_torchvision.CenterCrop((3, 2))(x), x[..., 1:4, 2:4])
