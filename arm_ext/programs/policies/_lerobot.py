# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""LeRobot's policies without what LeRobot needs to train, record and drive robots.

A policy's own modules import torch, einops, draccus and transformers; the packages
around them import some thirty more. Those stay out: while a policy is imported,
each is an empty module that gives a class for every name. Nothing of one pass of a
policy uses them. What it takes from torchvision is in
:mod:`arm_ext.programs.policies._torchvision`. ``sys.modules`` is left as it was, so a
program that imports lerobot itself gets all of it.

"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

INSTALL = "arm-ext's policies extra and `pip install --no-deps lerobot==0.4.4`"
# Their __init__ imports every policy and every processor.
_EMPTY_PACKAGES = ("lerobot.policies",)
_TRAINING = (
    "accelerate",
    "datasets",
    "diffusers",
    "imageio",
    "lerobot.configs.train",
    "lerobot.datasets",
    "lerobot.processor",
)
_imported: dict[str, ModuleType] = {}


def missing() -> str | None:
    """Return in a sentence what is not installed; None when nothing."""
    absent = [
        name
        for name in ("lerobot", "einops", "draccus", "transformers")
        if find_spec(name) is None
    ]
    if not absent:
        return None
    return f"the policies need {', '.join(absent)}: install {INSTALL}"


def load(name: str, *classes: str) -> ModuleType:
    """Import a module of lerobot.

    Args:
        name (str): Its name in lerobot, ``"policies.act.modeling_act"``.
        *classes (str): What it takes from transformers, which asks once what else is
            installed and must not see our empty modules then.

    Raises:
        ModuleNotFoundError: A package that the policies need is not installed.

    """
    if reason := missing():
        raise ModuleNotFoundError(reason)
    for found in classes:
        getattr(importlib.import_module("transformers"), found)
    with _without_training():
        return importlib.import_module(f"lerobot.{name}")


@contextmanager
def _without_training() -> Iterator[None]:
    finder = _StandIns()
    outside = _take_out(finder)
    sys.modules.update(_imported)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _imported.update(_take_out(finder))
        sys.modules.update(outside)


def _take_out(finder: _StandIns) -> dict[str, ModuleType]:
    names = [n for n in sys.modules if n.split(".")[0] == "lerobot" or finder.knows(n)]
    return {name: sys.modules.pop(name) for name in names}


class _StandIns(MetaPathFinder, Loader):
    """Finds an empty module where a policy's import is not to be followed."""

    def knows(self, name: str) -> bool:
        left_out = (*_TRAINING, "torchvision")
        return name in _EMPTY_PACKAGES or any(
            name == known or name.startswith(f"{known}.") for known in left_out
        )

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if not self.knows(name):
            return None
        spec = ModuleSpec(name, self, is_package=True)
        if name in _EMPTY_PACKAGES:
            spec.submodule_search_locations = [_folder(name, path)]
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.name in _EMPTY_PACKAGES:
            return ModuleType(spec.name)
        return _Anything(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__.split(".")[0] == "torchvision":
            from arm_ext.programs.policies import _torchvision

            vars(module).update(_torchvision.names(module.__name__))


def _folder(name: str, path: Any) -> str:
    return str(Path(next(iter(path))) / name.rpartition(".")[2])


class _Anything(ModuleType):
    """A module with a class for every name that is asked for."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__class_getitem__": classmethod(lambda cls, _: cls)})
