# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Manifests: what is exported, as TOML that a reviewer can read.

[entries."arm_ext.apply"]
lifecycle = "stable"
stub = "def apply(*, only: Iterable[str] | None = None) -> Status: ..."

"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "manifests"
RUNNING = FOLDER / "running.toml"


class Lifecycle(str, Enum):
    """What a caller may count on.

    Attributes:
        STABLE: Works in every release of the same major version.
        EXPERIMENTAL: May change with any release.
        DEPRECATED: Works until the version named in ``until``.

    """

    STABLE = "stable"
    EXPERIMENTAL = "experimental"
    DEPRECATED = "deprecated"


@dataclass(frozen=True)
class Entry:
    """One exported object.

    Attributes:
        stub (str): Its line in a stub file; a class without its body.
        lifecycle (Lifecycle): What a caller may count on.
        until (str): The version that a deprecated object is kept until.

    """

    stub: str
    lifecycle: Lifecycle = Lifecycle.STABLE
    until: str = ""


Entries = Mapping[str, Entry]


def read(path: Path) -> dict[str, Entry]:
    """Return the entries of a manifest by dotted name.

    Raises:
        ValueError: An entry has no stub, or a lifecycle that does not exist.

    """
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    entries = {}
    for name, fields in document["entries"].items():
        try:
            entries[name] = Entry(
                fields["stub"],
                Lifecycle(fields.get("lifecycle", "stable")),
                fields.get("until", ""),
            )
        except (KeyError, ValueError) as error:
            raise ValueError(f"{path.name}: entry {name!r}: {error}") from None
    return entries


def write(path: Path, entries: Entries) -> None:
    """Write a manifest, sorted by name."""
    import tomli_w

    document = {
        "entries": {
            name: {
                "stub": entry.stub,
                "lifecycle": entry.lifecycle.value,
                **({"until": entry.until} if entry.until else {}),
            }
            for name, entry in sorted(entries.items())
        }
    }
    path.write_text(tomli_w.dumps(document), encoding="utf-8")


def frozen(prefix: str) -> list[Path]:
    """Return the manifests of releases, the oldest first."""
    from packaging.version import Version

    paths = FOLDER.glob(f"{prefix}-*.toml")
    return sorted(paths, key=lambda path: Version(path.stem.partition("-")[2]))
