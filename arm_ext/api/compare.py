# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What changed between two manifests, and whether callers break."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from arm_ext.api.manifest import Entries, Lifecycle

# Kinds as Griffe names them: what they are called here, and what would be
# compatible.
_KINDS = {
    "PARAMETER_MOVED": ("signature narrowed", "append new parameters at the end"),
    "PARAMETER_REMOVED": ("signature narrowed", "keep the parameter and ignore it"),
    "PARAMETER_CHANGED_KIND": ("signature narrowed", "keep how it may be passed"),
    "PARAMETER_CHANGED_DEFAULT": ("default changed", "add a parameter instead"),
    "PARAMETER_CHANGED_REQUIRED": ("signature narrowed", "keep the default"),
    "PARAMETER_ADDED_REQUIRED": ("signature narrowed", "give it a default"),
    "RETURN_CHANGED_TYPE": ("return type changed", "return a subtype"),
    "OBJECT_REMOVED": ("removed", "keep it, deprecated until the next major version"),
    "OBJECT_CHANGED_KIND": ("kind changed", "add a name instead"),
    "CLASS_REMOVED_BASE": ("base removed", "keep the base"),
}


@dataclass(frozen=True)
class Change:
    """A change that breaks some caller.

    Attributes:
        name (str): Dotted name of the object.
        kind (str): ``"removed"``, ``"moved"``, ``"signature narrowed"``, ...
        detail (str): What it was and what it is.
        compatible (str): What a compatible change would look like.

    """

    name: str
    kind: str
    detail: str
    compatible: str

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}: {self.detail}. Compatible: {self.compatible}"


def breaking(old: Entries, new: Entries) -> list[Change]:
    """Return the changes that break callers of what ``old`` promises.

    Experimental objects promise nothing; deprecated ones hold until their version.

    """
    import griffe

    changes = []
    before, after = _modules(old), _modules(new)
    for module, stubs in before.items():
        pair = [
            griffe.visit(module, Path(f"{module}.pyi"), text)
            for text in (stubs, after.get(module, ""))
        ]
        for breakage in griffe.find_breaking_changes(*pair):
            name = _full_name(module, breakage.obj.path)
            entry = old.get(name)
            if entry is None or entry.lifecycle is Lifecycle.EXPERIMENTAL:
                continue
            kind, compatible = _KINDS[breakage.kind.name]
            detail = f"{breakage.old_value} became {breakage.new_value}"
            if kind == "removed":
                detail = f"was {entry.stub}"
                if moved := _elsewhere(name, new):
                    kind, detail = "moved", f"is {moved} now"
                    compatible = "leave an alias at the old name"
            changes.append(Change(name, kind, detail, compatible))
    return changes + list(_changed_attributes(old, new))


def _changed_attributes(old: Entries, new: Entries) -> Iterator[Change]:
    """Yield what Griffe leaves out: attributes, enum members among them."""
    for name in old.keys() & new.keys():
        before, after = old[name], new[name]
        is_attribute = not before.stub.startswith(("def ", "class "))
        if not is_attribute or before.lifecycle is Lifecycle.EXPERIMENTAL:
            continue
        if before.stub != after.stub:
            detail = f"`{before.stub}` became `{after.stub}`"
            yield Change(name, "attribute changed", detail, "add a name instead")


def undeclared(manifest: Entries, code: Entries) -> list[str]:
    """Return in what the code differs from the running manifest."""
    lines = [
        f"{n}: is exported, but not declared"
        for n in sorted(code.keys() - manifest.keys())
    ]
    lines += [
        f"{n}: is declared, but not exported"
        for n in sorted(manifest.keys() - code.keys())
    ]
    for name in sorted(manifest.keys() & code.keys()):
        if manifest[name].stub != code[name].stub:
            lines.append(
                f"{name}: declared as `{manifest[name].stub}`, is `{code[name].stub}`"
            )
    return lines


def _elsewhere(name: str, entries: Entries) -> str | None:
    last = name.rpartition(".")[2]
    return next((n for n in entries if n != name and n.endswith(f".{last}")), None)


def _full_name(module: str, path: str) -> str:
    # Griffe takes the dots of a module's name for a path of its own.
    return path if path.startswith(module) else f"{module}.{path}"


def _modules(entries: Entries) -> dict[str, str]:
    """Return the text of a stub file for each module of a manifest."""
    children: dict[str, list[str]] = defaultdict(list)
    roots: dict[str, list[str]] = defaultdict(list)
    for name in sorted(entries):
        parent = name.rpartition(".")[0]
        (children if parent in entries else roots)[parent].append(name)
    return {
        module: "\n".join(
            line for name in names for line in _lines(name, entries, children)
        )
        for module, names in roots.items()
    }


def _lines(
    name: str, entries: Entries, children: dict[str, list[str]]
) -> Iterator[str]:
    stub = entries[name].stub
    if not stub.startswith("class "):
        yield stub
        return
    yield stub.removesuffix(" ...")
    for child in children.get(name, ()):
        yield from ("    " + line for line in _lines(child, entries, children))
    yield "    ..."
