# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What the policies take from torchvision, made of torch.

torchvision's compiled ops are built for one release of torch, so it may be missing or
not load; a policy built here never needs it. Layers, their names and their order are
torchvision's. A residual network has a quarter of the channels: a small model shows
what lowers as well, and sooner.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

Norm = Callable[[int], nn.Module]
_MODULES = {
    "torchvision": ("models", "ops", "transforms"),
    "torchvision.models": ("resnet18", "resnet34"),
    "torchvision.models._utils": ("IntermediateLayerGetter",),
    "torchvision.ops.misc": ("FrozenBatchNorm2d",),
    "torchvision.transforms": ("CenterCrop",),
}


def names(module: str) -> dict[str, Any]:
    """Return what is in a module of torchvision, as far as it exists here."""
    if module == "torchvision":
        return {}  # its submodules are imported one by one
    return {name: globals()[name] for name in _MODULES.get(module, ())}


class FrozenBatchNorm2d(nn.Module):
    """Batch norm with fixed statistics, [N, C, H, W] to the same."""

    weight: torch.Tensor
    bias: torch.Tensor
    running_mean: torch.Tensor
    running_var: torch.Tensor

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", torch.ones(num_features))
        self.register_buffer("bias", torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        bias = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + bias.reshape(1, -1, 1, 1)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, [N, C, H, W]."""

    def __init__(self, inputs: int, outputs: int, stride: int, norm: Norm) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = norm(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = norm(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.downsample = nn.Sequential(conv, norm(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + shortcut)


class ResNet(nn.Module):
    """A residual network of basic blocks, [N, 3, H, W] to [N, 1000]."""

    def __init__(self, depths: Sequence[int], norm: Norm) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 7, stride=2, padding=3, bias=False)
        self.bn1 = norm(16)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = _stage(16, 16, 1, depths[0], norm)
        self.layer2 = _stage(16, 32, 2, depths[1], norm)
        self.layer3 = _stage(32, 64, 2, depths[2], norm)
        self.layer4 = _stage(64, 128, 2, depths[3], norm)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(128, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in list(self.children())[:-1]:
            x = layer(x)
        return self.fc(x.flatten(1))


def _stage(
    inputs: int, outputs: int, stride: int, depth: int, norm: Norm
) -> nn.Sequential:
    first = BasicBlock(inputs, outputs, stride, norm)
    rest = (BasicBlock(outputs, outputs, 1, norm) for _ in range(depth - 1))
    return nn.Sequential(first, *rest)


def resnet18(norm_layer: Norm | None = None, **_: Any) -> ResNet:
    """Return a ResNet-18 with random weights."""
    return ResNet((2, 2, 2, 2), norm_layer or nn.BatchNorm2d)


def resnet34(norm_layer: Norm | None = None, **_: Any) -> ResNet:
    """Return a ResNet-34 with random weights."""
    return ResNet((3, 4, 6, 3), norm_layer or nn.BatchNorm2d)


class IntermediateLayerGetter(nn.ModuleDict):
    """The layers of a model up to the last one wanted; returns outputs by name."""

    def __init__(self, model: nn.Module, return_layers: Mapping[str, str]) -> None:
        layers = {}
        for name, layer in model.named_children():
            layers[name] = layer
            if name == list(return_layers)[-1]:
                break
        super().__init__(layers)
        self.return_layers = dict(return_layers)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        outputs = {}
        for name, layer in self.items():
            x = layer(x)
            if name in self.return_layers:
                outputs[self.return_layers[name]] = x
        return outputs


class CenterCrop(nn.Module):
    """The middle of an image, [..., H, W] to [..., *size]."""

    def __init__(self, size: Sequence[int]) -> None:
        super().__init__()
        self.size = tuple(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        top, left = ((have - want) // 2 for have, want in zip(x.shape[-2:], self.size))
        return x[..., top : top + self.size[0], left : left + self.size[1]]
