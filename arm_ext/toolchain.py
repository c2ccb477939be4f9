# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Finds the VGF tools and makes them start on a machine with an older glibc.

The model converter that executorch pins is built for glibc 2.38; Debian 12 has
2.36. There it starts through a private loader: :func:`set_up_converter` unpacks
the C and C++ libraries of the distribution's next release into a folder of this
environment and writes a wrapper that runs the converter with them. Nothing is
installed system-wide and no file of another package is edited.

"""

import functools
import importlib.util
import os
import platform
import re
import shlex
import shutil
import site
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SETUP_COMMAND = "arm-ext setup-converter"
_PACKAGES = ("libc6", "libstdc++6", "libgcc-s1")


class ToolUnavailable(RuntimeError):
    """A tool is missing or does not start; the message says what to do."""


@dataclass(frozen=True)
class _Distribution:
    """A release that is too old for the tools, and where its libraries come from."""

    next_release: str
    keyring: Path


_DEBIAN_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_UBUNTU_KEYS = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
_OLDER = {
    "bookworm": _Distribution("trixie", _DEBIAN_KEYS),
    "jammy": _Distribution("noble", _UBUNTU_KEYS),
}


# Finding a converter


def find_converter() -> Path | None:
    """Return the first model converter, whether it starts or not.

    Looks at ``MODEL_CONVERTER_PATH``, at ``PATH`` and in the wheel, which is
    not on ``PATH`` when the environment is not activated.

    """
    named = os.environ.get("MODEL_CONVERTER_PATH", "")
    if os.path.isfile(named) and os.access(named, os.X_OK):
        return Path(named)
    for name in ("model-converter", "model_converter"):
        found = shutil.which(name)
        # The wheel's own script only starts the wheel's binary.
        if found and os.path.dirname(found) != sysconfig.get_path("scripts"):
            return Path(found)
    return wheel_binary("model_converter", "model-converter")


def wheel_binary(package: str, name: str) -> Path | None:
    """Return a program that a wheel of the ML SDK carries, or None."""
    spec = importlib.util.find_spec(package)
    for folder in spec.submodule_search_locations or () if spec else ():
        binary = Path(folder) / "binaries" / "bin" / name
        if binary.is_file():
            return binary
    return None


def why_not(executable: Path) -> str | None:
    """Return why an executable does not start, in one line; None when it does.

    Every delegate asks, so the answer is kept until the file or the environment
    that it starts in changes. A time-out or another failure to run it at all is
    not kept.

    """
    libraries = _environment().get("LD_LIBRARY_PATH")
    try:
        found = os.stat(executable)
        return _start(str(executable), found.st_mtime_ns, found.st_size, libraries)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)


@functools.cache
def _start(executable: str, *state: object) -> str | None:
    """Start an executable; ``state`` is what the answer depends on beside it."""
    result = subprocess.run(
        [executable, "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        env=_environment(),
    )
    if result.returncode == 0:
        return None
    output = (result.stderr or result.stdout).strip()
    if re.search(r"version `GLIBC(XX)?_[\d.]+' not found", output):
        return f"it is built for a newer C library than this machine's {_glibc()}"
    return output.partition("\n")[0] or f"it exits with {result.returncode}"


def needs_private_glibc() -> bool:
    """Whether the wheels' tools are built for a newer glibc than the machine's."""
    converter = wheel_binary("model_converter", "model-converter")
    return converter is not None and why_not(converter) is not None


def _environment() -> dict[str, str]:
    """Return the environment that executorch starts the converter in."""
    env = dict(os.environ)
    if folder := env.get("MODEL_CONVERTER_LIB_DIR"):
        rest = env.get("LD_LIBRARY_PATH")
        env["LD_LIBRARY_PATH"] = f"{folder}:{rest}" if rest else folder
    return env


def _glibc() -> str:
    return " ".join(platform.libc_ver()).strip() or "C library"


def usable_converter() -> Path:
    """Return a model converter that starts.

    Raises:
        ToolUnavailable: None is installed, or the one found does not start.

    """
    found = _found_converter()
    reason = why_not(found)
    if reason is None:
        return found
    wrapper = _wrapper()
    if _is_for(wrapper, found) and why_not(wrapper) is None:
        return wrapper
    raise ToolUnavailable(
        f"The model converter {found} does not start: {reason}{_way_out(found)}."
    )


def _found_converter() -> Path:
    found = find_converter()
    if found is None:
        raise ToolUnavailable(
            "No model converter is installed; `pip install 'executorch[vgf]'` "
            "brings one, or MODEL_CONVERTER_PATH names another."
        )
    return found


def _way_out(converter: Path) -> str:
    if _is_elf(converter) and sys.platform == "linux":
        return f"; `{SETUP_COMMAND}` sets up a private one beside this environment"
    return ""


def _is_elf(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


# The private loader


def private_folder() -> Path:
    """Return the folder beside this environment that arm_ext may write to."""
    system_wide = sys.prefix in ("/usr", "/usr/local")
    return Path(site.getuserbase() if system_wide else sys.prefix) / "share" / "arm-ext"


def _glibc_folder() -> Path:
    return private_folder() / "glibc"


def _wrapper() -> Path:
    return private_folder() / "bin" / "model-converter"


def through_loader() -> list[str]:
    """Return the words to put before a program to run it on the private glibc.

    Empty where none is set up.

    """
    for loader in sorted(_glibc_folder().glob("usr/lib/*/ld-linux-*.so.*")):
        return [str(loader), "--library-path", str(loader.parent)]
    return []


def _wrapper_text(converter: Path) -> str:
    loader, option, folder = map(shlex.quote, through_loader())
    # --library-path takes the place of LD_LIBRARY_PATH, which is how executorch
    # hands MODEL_CONVERTER_LIB_DIR on.
    folders = f'{folder}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
    program = shlex.quote(str(converter))
    return f'#!/bin/sh\nexec {loader} {option} {folders} {program} "$@"\n'


def _is_for(wrapper: Path, converter: Path) -> bool:
    """Whether the wrapper is there and runs this very converter."""
    if not wrapper.is_file() or not through_loader():
        return False
    return wrapper.read_text() == _wrapper_text(converter)


def set_up_converter() -> Path:
    """Make the model converter start and return what to start.

    Where it and the wheel's one start as they are, nothing is done. Needs the
    distribution's package mirror once, and ``apt-get`` and ``dpkg-deb``, which
    Debian and Ubuntu have.

    Raises:
        ToolUnavailable: The converter cannot be made to start here.

    """
    found = _found_converter()
    if (reason := why_not(found)) and not _way_out(found):
        raise ToolUnavailable(f"The model converter {found} does not start: {reason}.")
    if reason is None and not needs_private_glibc():
        return found
    if not through_loader():
        _unpack_glibc(_glibc_folder())
    if reason:
        _write_wrapper(found)
    return usable_converter()


def _write_wrapper(converter: Path) -> None:
    wrapper = _wrapper()
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_wrapper_text(converter))
    wrapper.chmod(0o755)
    if reason := why_not(wrapper):
        raise ToolUnavailable(
            f"The model converter does not start on the private glibc either: {reason}."
        )


def _unpack_glibc(target: Path) -> None:
    codename = _os_release().get("VERSION_CODENAME", "")
    if codename not in _OLDER:
        raise ToolUnavailable(
            f"Only {' and '.join(_OLDER)} are known to need a private glibc and this "
            f"is {codename or sys.platform!r}; point MODEL_CONVERTER_PATH at a model "
            "converter that starts here."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        root = Path(folder) / "root"
        for package in _download(_OLDER[codename], codename, Path(folder)):
            _run(["dpkg-deb", "-x", str(package), str(root)])
        shutil.rmtree(target, ignore_errors=True)
        os.rename(root, target)


def _os_release() -> Mapping[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def _download(release: _Distribution, codename: str, folder: Path) -> list[Path]:
    """Fetch the packages with apt, which checks them against the archive's keys.

    The lists, the cache and the sources are this folder's own; the machine's
    proxy and transport settings stay.

    """
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    sources = folder / "sources.list"
    config = folder / "apt.conf"
    config.write_text(
        "#clear APT::Update::Pre-Invoke;\n"
        "#clear APT::Update::Post-Invoke;\n"
        "#clear APT::Update::Post-Invoke-Success;\n"
        'APT::Default-Release "";\n'
        'Acquire::Languages "none";\n'
        f'Dir::State::lists "{folder}/lists";\n'
        f'Dir::State::status "{folder}/status";\n'
        f'Dir::Cache "{folder}/cache";\n'
        'Dir::Etc::preferences "/dev/null";\n'
        'Dir::Etc::preferencesparts "/dev/null";\n'
        # _apt may not enter a folder that root made for itself.
        + ('APT::Sandbox::User "root";\n' if os.geteuid() == 0 else "")
    )
    apt = ["apt-get", f"--config-file={config}", "--quiet"]
    mirror = _mirror(_run([*apt, "update", "--print-uris"]), codename)
    sources.write_text(
        f"deb [signed-by={release.keyring}] {mirror} {release.next_release} main\n"
    )
    apt += ["-o", f"Dir::Etc::sourcelist={sources}"]
    apt += ["-o", "Dir::Etc::sourceparts=/dev/null"]
    _run([*apt, "update"])
    _run([*apt, "download", *_PACKAGES], cwd=folder)
    return sorted(folder.glob("*.deb"))


def _mirror(uris: str, codename: str) -> str:
    """Return the mirror that the machine takes its own release from.

    Args:
        uris (str): What ``apt-get update --print-uris`` prints.
        codename (str): The machine's release.

    """
    found = re.search(rf"^'(\S+)/dists/{codename}/InRelease'", uris, re.MULTILINE)
    if found is None:
        raise ToolUnavailable(
            f"apt's sources name no mirror of {codename}, so there is none to take a "
            "newer glibc from."
        )
    return found[1]


def _run(command: list[str], cwd: Path | None = None) -> str:
    try:
        result = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    except FileNotFoundError:
        raise ToolUnavailable(
            f"Setting up a private glibc needs {command[0]}, which is not installed."
        ) from None
    # apt reports a mirror that it cannot reach as a warning and exits with 0.
    failed = re.search(r"^(E:|W: (Failed|GPG)).*", result.stderr, re.MULTILINE)
    if result.returncode != 0 or failed:
        reason = failed[0] if failed else result.stderr.strip().rpartition("\n")[2]
        raise ToolUnavailable(f"{' '.join(command[:1])} failed: {reason}")
    return result.stdout
