# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``arm-ext api``: the public API, checked against its manifests."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from typing import Any

_SURFACE = (
    "import json, sys; from arm_ext.api import surface; "
    "entries = surface.runtime(surface.arm_backend()); "
    "json.dump({n: e.stub for n, e in entries.items()}, open(sys.argv[1], 'w'))"
)


def add(commands: Any) -> None:
    """Add the command to the parser of ``arm-ext``."""
    parser = commands.add_parser("api", help="check the public API, or record it")
    verbs = parser.add_subparsers(dest="verb", required=True)
    check = verbs.add_parser("check", help="fail on a change that is not declared")
    check.add_argument(
        "--backend",
        action="store_true",
        help="check instead that patching leaves the Arm backend's own API alone",
    )
    check.set_defaults(run=_check)
    update = verbs.add_parser("update", help="write the running manifest")
    update.set_defaults(run=_update)
    freeze = verbs.add_parser("freeze", help="record a release")
    freeze.add_argument("version")
    freeze.set_defaults(run=_freeze)
    record = verbs.add_parser("record", help="record the installed Arm backend's API")
    record.set_defaults(run=_record)


def _check(args: argparse.Namespace) -> int:
    problems = _backend_problems() if args.backend else _own_problems()
    for problem in problems:
        print(problem)
    if not problems:
        print("The public API is as declared.")
    return int(bool(problems))


def _own_problems() -> list[str]:
    from arm_ext.api import compare, manifest, surface

    running = manifest.read(manifest.RUNNING)
    problems = compare.undeclared(running, surface.own())
    if problems:
        problems.append("`arm-ext api update` declares what the code exports.")
    for path in manifest.frozen("arm_ext")[-1:]:
        changes = compare.breaking(manifest.read(path), running)
        problems += [f"since {path.stem}: {change}" for change in changes]
    return problems


def _backend_problems() -> list[str]:
    from arm_ext.api import compare, manifest

    stock, patched = (backend_surface(patched) for patched in (False, True))
    problems = [f"patched: {c}" for c in compare.breaking(stock, patched)]
    for path in manifest.frozen("executorch"):
        recorded = manifest.read(path)
        # What upstream itself took away between two releases is not ours.
        upstream = compare.breaking(recorded, stock)
        changes = compare.breaking(recorded, patched)
        problems += [f"since {path.stem}: {c}" for c in changes if c not in upstream]
    return problems


def backend_surface(patched: bool) -> Any:
    """Return the Arm backend's public API as a fresh process has it."""
    import tempfile

    from arm_ext.api.manifest import Entry

    environment = {**os.environ, "ARM_EXT": str(int(patched))}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "surface.json")
        done = subprocess.run(
            [sys.executable, "-c", _SURFACE, path],
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no message"]
            raise RuntimeError(f"the Arm backend does not load: {lines[-1]}")
        with open(path, encoding="utf-8") as file:
            return {name: Entry(stub) for name, stub in json.load(file).items()}


def _update(args: argparse.Namespace) -> int:
    from dataclasses import replace

    from arm_ext.api import manifest, surface

    known = manifest.read(manifest.RUNNING) if manifest.RUNNING.exists() else {}
    entries = {
        name: replace(known[name], stub=entry.stub) if name in known else entry
        for name, entry in surface.own().items()
    }
    manifest.write(manifest.RUNNING, entries)
    print(f"{len(entries)} entries in {manifest.RUNNING}")
    return 0


def _freeze(args: argparse.Namespace) -> int:
    from arm_ext.api import manifest

    path = manifest.FOLDER / f"arm_ext-{args.version}.toml"
    if path.exists():
        print(f"{path.name} is frozen already", file=sys.stderr)
        return 1
    manifest.write(path, manifest.read(manifest.RUNNING))
    print(path)
    return 0


def _record(args: argparse.Namespace) -> int:
    from importlib.metadata import version

    from arm_ext.api import manifest

    path = manifest.FOLDER / f"executorch-{version('executorch')}.toml"
    manifest.write(path, backend_surface(patched=False))
    print(path)
    return 0
