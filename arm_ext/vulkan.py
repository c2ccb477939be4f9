# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Executes a compiled VGF on a Vulkan driver, a software one by default.

The scenario runner of Arm's ML SDK dispatches the graph; the SDK's emulation
layer turns it into compute shaders; Mesa's lavapipe runs those on the CPU. A run
builds its pipeline anew, which takes seconds; the graph itself takes
milliseconds.

"""

import ctypes.util
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from arm_ext import toolchain

# Graph before Tensor: the graph layer calls the tensor layer below it.
_LAYERS = ("Graph", "Tensor")
_SYSTEM_PACKAGES = "libvulkan1 mesa-vulkan-drivers"


def missing() -> str | None:
    """Return what is missing to execute a VGF and how to get it, or None."""
    needed = {
        "the scenario runner": toolchain.wheel_binary(
            "scenario_runner", "scenario-runner"
        ),
        "the VGF library": toolchain.wheel_binary("vgf_lib", "vgf_dump"),
    }
    for name, found in needed.items():
        if found is None:
            return f"{name} is missing: `pip install 'executorch-arm-ext[run]'`"
    if find_spec("emulation_layer") is None:
        return "the emulation layer is missing: `pip install 'executorch[vgf]'`"
    if ctypes.util.find_library("vulkan") is None or not _driver():
        return f"Vulkan is missing: `apt-get install {_SYSTEM_PACKAGES}`"
    if toolchain.needs_private_glibc() and not toolchain.through_loader():
        return (
            "the emulation layer is built for a newer C library than this machine's: "
            f"`{toolchain.SETUP_COMMAND}`"
        )
    return None


def run(vgf: bytes, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Execute a compiled VGF and return its outputs.

    Args:
        vgf (bytes): What the model converter wrote.
        inputs (Sequence[np.ndarray]): One array an input of the graph, of its
            shape and element size, in the graph's order.

    Returns:
        list[np.ndarray]: The outputs in the graph's order.

    Raises:
        ToolUnavailable: Something that this needs is not installed.
        RuntimeError: The inputs do not fit the graph, or the runner failed; the
            message holds what it said.

    """
    if reason := missing():
        raise toolchain.ToolUnavailable(f"Cannot execute a compiled VGF: {reason}.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "graph.vgf").write_bytes(vgf)
        outputs = _write_scenario(folder, inputs)
        runner = toolchain.wheel_binary("scenario_runner", "scenario-runner")
        command = [*toolchain.through_loader(), str(runner)]
        command += ["--scenario", "scenario.json", "--output", "."]
        _call(command, folder, **_layer_environment(folder))
        return [np.load(path) for path in outputs]


def _call(command: list[str], folder: Path, **env: str) -> str:
    env = {**os.environ, **env}
    result = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True
    )
    if result.returncode != 0:
        output = (result.stdout + result.stderr).strip().splitlines()
        said = "\n".join(output[-10:])
        raise RuntimeError(f"`{shlex.join(command)}` failed:\n{said}")
    return result.stdout


def _write_scenario(folder: Path, inputs: Sequence[np.ndarray]) -> list[Path]:
    """Write the scenario and its inputs; return where the outputs will be."""
    dump = toolchain.wheel_binary("vgf_lib", "vgf_dump")
    template = [str(dump), "--input", "graph.vgf", "--scenario-template"]
    scenario = json.loads(_call(template, folder))
    tensors = [r["tensor"] for r in scenario["resources"] if "tensor" in r]
    sources = [tensor for tensor in tensors if "src" in tensor]
    results = [tensor for tensor in tensors if "dst" in tensor]
    if len(sources) != len(inputs):
        raise RuntimeError(f"the VGF takes {len(sources)} inputs, not {len(inputs)}")
    for index, (tensor, array) in enumerate(zip(sources, inputs)):
        if array.size != np.prod(tensor["dims"], dtype=int):
            raise RuntimeError(
                f"input {index} of the VGF has shape {tensor['dims']}, "
                f"not {list(array.shape)}"
            )
        tensor["src"] = f"input_{index}.npy"
        np.save(folder / tensor["src"], array.reshape(tensor["dims"]))
    for index, tensor in enumerate(results):
        tensor["dst"] = f"output_{index}.npy"
    (folder / "scenario.json").write_text(json.dumps(scenario))
    return [folder / tensor["dst"] for tensor in results]


def _layer_environment(folder: Path) -> dict[str, str]:
    """Return what makes the Vulkan loader put the emulation layer on the driver.

    Some loaders ignore the order of ``VK_INSTANCE_LAYERS`` and take that in
    which they find the manifests, so each manifest gets a folder of its own.

    """
    paths = []
    for name, manifest in _manifests():
        path = folder / name
        path.mkdir()
        (path / f"VkLayer_{name}.json").write_text(json.dumps(manifest))
        paths.append(str(path))
    layers = ":".join(f"VK_LAYER_ML_{name}_Emulation" for name in _LAYERS)
    return {
        "VK_LAYER_PATH": ":".join(paths),
        "VK_INSTANCE_LAYERS": layers,
        "VK_DRIVER_FILES": _driver(),
        "VK_ICD_FILENAMES": _driver(),
    }


def _manifests() -> Iterator[tuple[str, dict]]:
    package = find_spec("emulation_layer")
    assert package is not None and package.submodule_search_locations is not None
    deploy = Path(package.submodule_search_locations[0]) / "deploy"
    for name in _LAYERS:
        source = deploy / f"share/vulkan/explicit_layer.d/VkLayer_{name}.json"
        manifest = json.loads(source.read_text())
        # A manifest names its library relative to itself.
        library = deploy / "lib" / manifest["layer"]["library_path"]
        manifest["layer"]["library_path"] = str(library)
        yield name, manifest


def _driver() -> str:
    """Return the driver manifests to use: the user's choice, or lavapipe's."""
    chosen = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES")
    if chosen:
        return chosen
    manifests = Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json")
    return next((str(path) for path in sorted(manifests)), "")
