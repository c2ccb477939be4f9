# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The script behind README's two commands."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "tools" / "bootstrap.py"


@pytest.fixture
def bootstrap(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("bootstrap", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "STAMP", tmp_path / "stamp")
    return module


@pytest.fixture
def commands(bootstrap, monkeypatch) -> list[str]:
    """The commands that would run; those whose text holds a word here fail."""

    class Commands(list):
        failing: tuple[str, ...] = ()

    made = Commands()

    def run(*command, **options):
        text = " ".join(map(str, command))
        made.append(text)
        if any(word in text for word in made.failing):
            raise subprocess.CalledProcessError(1, list(map(str, command)))

    monkeypatch.setattr(bootstrap, "run", run)
    return made


def installs(commands: list[str]) -> list[str]:
    return [c.partition(" install ")[2] for c in commands if " install " in c]


def test_cpu_build_that_pip_finds_comes_first(bootstrap, commands):
    commands.failing = ("nvidia-smi",)
    bootstrap.install_torch()
    [install] = installs(commands)
    assert "torch==2.13.0+cpu" in install


def test_uv_is_asked_next_and_plain_pip_last(bootstrap, commands):
    commands.failing = ("nvidia-smi", "+cpu", "--torch-backend")
    bootstrap.install_torch()
    cpu, uv, backend, plain = installs(commands)
    assert "+cpu" in cpu and uv == "uv" and "--torch-backend cpu" in backend
    assert plain.split()[0] == "torch==2.13.0"


def test_gpu_takes_the_ordinary_build(bootstrap, commands):
    bootstrap.install_torch()
    [install] = installs(commands)
    assert install.split()[0] == "torch==2.13.0"


def test_second_run_installs_nothing_until_the_pins_change(
    bootstrap, commands, monkeypatch, tmp_path
):
    bootstrap.install()
    assert installs(commands)
    commands.clear()
    bootstrap.install()
    assert not commands
    changed = tmp_path / "constraints.txt"
    changed.write_text("torch==2.13.1\n")
    monkeypatch.setattr(bootstrap, "CONSTRAINTS", changed)
    bootstrap.install()
    assert installs(commands)


def test_lerobot_moves_no_torch(bootstrap, commands):
    bootstrap.install()
    [lerobot] = [command for command in installs(commands) if "lerobot" in command]
    assert "--no-deps" in lerobot and "--constraint" in lerobot


def test_failed_install_is_tried_again(bootstrap, commands):
    commands.failing = ("--editable",)
    with pytest.raises(subprocess.CalledProcessError):
        bootstrap.install()
    commands.failing = ()
    commands.clear()
    bootstrap.install()
    assert any("--editable" in command for command in commands)


def no_ensurepip(bootstrap, monkeypatch, uid: int) -> None:
    monkeypatch.setattr(bootstrap.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: uid)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: f"/usr/bin/{name}")


def test_missing_venv_package_is_installed_by_root(bootstrap, commands, monkeypatch):
    no_ensurepip(bootstrap, monkeypatch, uid=0)
    bootstrap.ensure_venv_module()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert commands[-1].endswith(f"python{version}-venv")


def test_missing_venv_package_is_named_to_a_user(bootstrap, commands, monkeypatch):
    no_ensurepip(bootstrap, monkeypatch, uid=1000)
    with pytest.raises(SystemExit, match=r"sudo apt-get install python3\.\d+-venv"):
        bootstrap.ensure_venv_module()
    assert not commands


@pytest.mark.parametrize("version", [(3, 10, 14), (3, 14, 0)])
def test_other_python_is_refused_in_one_sentence(bootstrap, monkeypatch, version):
    monkeypatch.setattr(bootstrap.sys, "version_info", version)
    monkeypatch.setattr(bootstrap.sys, "argv", ["bootstrap.py", "check"])
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 to 3\.13"):
        bootstrap.main()
