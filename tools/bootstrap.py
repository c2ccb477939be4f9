#!/usr/bin/env python3
# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Make the tested environment in .venv, then use it. Needs Python and no more.

    python3 tools/bootstrap.py check [arguments of arm-ext check]
    python3 tools/bootstrap.py test  [arguments of pytest]
    python3 tools/bootstrap.py install

The first run installs what constraints.txt pins and takes minutes; later runs
start at once until pyproject.toml or constraints.txt changes.

"""

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
VENV = REPO / ".venv"
PYTHON = VENV / "bin" / "python"
CONSTRAINTS = REPO / "constraints.txt"
# What was installed last; written when all of it is there.
STAMP = VENV / "arm-ext-installed"
TORCH = "torch==2.13.0"
EXTRAS = "executorch,run,test,policies"

COMMANDS = {
    # The environment alone; `arm-ext status` shows that it works.
    "install": [str(VENV / "bin" / "arm-ext"), "status"],
    "check": [str(VENV / "bin" / "arm-ext"), "check"],
    # One file stays on one process: files share what they lowered. They start in
    # the order in which tests/conftest.py puts them.
    "test": [
        str(PYTHON),
        *"-m pytest -n auto --dist loadfile --no-loadscope-reorder".split(),
    ],
}


def say(text: str) -> None:
    print(f"bootstrap: {text}", file=sys.stderr, flush=True)


def run(*command: object, **options: object) -> None:
    subprocess.run([str(word) for word in command], check=True, **options)


def succeeds(*command: object) -> bool:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        run(*command, **quiet)
    except (subprocess.CalledProcessError, FileNotFoundError):
        return False
    return True


def pip(*arguments: object) -> list[object]:
    quiet = [] if sys.stdout.isatty() else ["--quiet"]
    return [PYTHON, "-m", "pip", *arguments, *quiet, "--constraint", CONSTRAINTS]


def ensure_venv_module() -> None:
    """Debian and Ubuntu keep a part of ``venv`` in a package of its own."""
    if importlib.util.find_spec("ensurepip"):
        return
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.exit(
            f"{sys.executable} cannot make environments; on Debian and Ubuntu "
            f"`sudo apt-get install {package}` mends it."
        )
    say(f"installing the Debian package {package}, which python3 -m venv needs")
    run("apt-get", "update", "-qq", stdout=subprocess.DEVNULL)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ("apt-get", "install", "-y", "-qq", package)
    run(*install, env=env, stdout=subprocess.DEVNULL)


def make_venv() -> None:
    if succeeds(PYTHON, "-m", "pip", "--version"):
        return
    ensure_venv_module()
    say(f"making {VENV}")
    run(sys.executable, "-m", "venv", "--clear", VENV)


def install_torch() -> None:
    """Install torch, its CPU build (a tenth of the size) where there is no GPU."""
    if sys.platform == "linux" and not succeeds("nvidia-smi", "-L"):
        say("installing the CPU build of torch")
        if succeeds(*pip("install", f"{TORCH}+cpu")):
            return
        # pip knows no index of CPU builds; uv does.
        uv = [PYTHON, "-m", "uv", "pip", "install", "--python", PYTHON]
        options = ["--torch-backend", "cpu", "--constraint", CONSTRAINTS]
        if succeeds(PYTHON, "-m", "pip", "install", "uv") and succeeds(
            *uv, *options, TORCH
        ):
            return
        say("no CPU build of torch can be reached; taking the one that pip finds")
    run(*pip("install", TORCH))


def wanted() -> str:
    """Return what identifies the environment that the tree asks for."""
    parts = [(REPO / "pyproject.toml").read_bytes(), CONSTRAINTS.read_bytes()]
    return hashlib.sha256(b"".join([*parts, str(REPO).encode()])).hexdigest()


def install() -> None:
    if STAMP.exists() and STAMP.read_text() == wanted():
        return
    install_torch()
    say("installing executorch, the test tools and this package")
    run(*pip("install", "--editable", f"{REPO}[{EXTRAS}]"))
    # LeRobot asks for an older torch; its policies run on this one.
    run(*pip("install", "--no-deps", "lerobot"))
    STAMP.write_text(wanted())


def set_up_converter() -> None:
    """Without a converter that starts only VGF is missing, so go on."""
    command = [VENV / "bin" / "arm-ext", "setup-converter"]
    # ARM_EXT=0: this needs no patched executorch, so need not import torch.
    subprocess.run(command, env={**os.environ, "ARM_EXT": "0"}, check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        found = sys.version.split()[0]
        sys.exit(f"This needs Python 3.11 to 3.13; {sys.executable} is {found}.")
    try:
        make_venv()
        install()
    except subprocess.CalledProcessError as error:
        sys.exit(f"bootstrap: failed: {' '.join(error.cmd)}")
    set_up_converter()
    command = [*COMMANDS[args.command], *args.arguments]
    os.chdir(REPO)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
