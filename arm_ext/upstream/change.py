# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What a fix becomes in executorch's tree, and how it is put there.

Sources are the files that the plugin itself runs, copied with nothing but the names
of their modules changed. What a fix does by patching is a hunk in their files.

"""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

ARM = "backends/arm"

# Our folders, and theirs; imports are renamed accordingly.
FOLDERS = {
    "passes": f"{ARM}/_passes",
    "partitioner": f"{ARM}/operator_support",
    "quantizer": f"{ARM}/quantizer",
    "lowering": f"{ARM}/common",
}
# Files of ours that go elsewhere than the others of their folder.
ELSEWHERE = {
    "lowering/delegation_tags.py": "exir/backend",
    "lowering/partition_boundary.py": "exir/backend",
    "partitioner/delegate_boundary.py": f"{ARM}/tosa",
    **{
        f"partitioner/{module}.py": f"{ARM}/tosa/partitioning"
        for module in (
            "__init__",
            "boundary",
            "capability",
            "levels",
            "proposal",
            "vertical",
        )
    },
}
_PASSES = f"{ARM}/_passes/__init__.py"
_MANAGER = f"{ARM}/_passes/arm_pass_manager.py"


class Refused(Exception):
    """A change does not fit a tree; the message names the file and the reason."""


class Checkout:
    """An executorch tree, and what is to be written into it.

    Args:
        root (Path): The folder that holds ``backends``.

    Raises:
        Refused: The folder holds no Arm backend.

    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.changed: dict[str, str] = {}
        if not (root / _MANAGER).is_file():
            raise Refused(f"{root} is no executorch checkout: it has no {_MANAGER}")

    def read(self, path: str) -> str | None:
        """Return the text of a file with what was changed; None where there is none."""
        if path in self.changed:
            return self.changed[path]
        file = self.root / path
        return file.read_text() if file.is_file() else None

    def diff(self) -> str:
        """Return what is to be written as a unified diff."""
        return "".join(line for path in self.changed for line in self._diff(path))

    def _diff(self, path: str) -> Iterator[str]:
        file = self.root / path
        old = file.read_text().splitlines(True) if file.is_file() else []
        source = f"a/{path}" if old else "/dev/null"
        new = self.changed[path].splitlines(True)
        return unified_diff(old, new, source, f"b/{path}")

    def write(self) -> None:
        """Write the changed files."""
        for path, text in self.changed.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


@dataclass(frozen=True)
class Hunk:
    """Lines put beside one line of a file, or in its place.

    Attributes:
        path (str): The file, from the folder that holds ``backends``.
        anchor (str): Text that occurs once in the file; lines are added whole.
        added (str): The new lines.
        before (bool): Whether they go in front of the anchor, not behind it.
        instead (bool): Whether they take its place.
        other (str): The anchor where a tree has not the first one.
        optional (bool): Whether a tree may lack the file, as a wheel lacks BUCK.
        shared (bool): Whether another change may have added the lines.

    """

    path: str
    anchor: str
    added: str
    before: bool = False
    instead: bool = False
    other: str = ""
    optional: bool = False
    shared: bool = False

    def apply(self, checkout: Checkout) -> None:
        text = checkout.read(self.path)
        if text is None and self.optional:
            return
        if text is None:
            raise Refused(f"{self.path}: there is no such file")
        anchor = self.other if self.other and self.other in text else self.anchor
        new = self._beside(anchor)
        if new in text and self.shared:
            return
        if new in text:
            raise Refused(f"{self.path}: has {self.added.strip()!r} already")
        if text.count(anchor) != 1:
            raise Refused(
                f"{self.path}: {anchor.strip()!r} is there {text.count(anchor)} times, and "
                "once in the trees that this change fits"
            )
        checkout.changed[self.path] = text.replace(anchor, new)

    def _beside(self, anchor: str) -> str:
        if self.instead:
            return self.added
        both = (self.added, anchor) if self.before else (anchor, self.added)
        return "".join(both)


@dataclass(frozen=True)
class Pass:
    """A pass of ours, exported by their package and run by their pass manager.

    Attributes:
        module (str): Its file in ``passes`` without the suffix.
        name (str): The class.
        call (str): How a pipeline makes it.
        before (str): The pass, as a pipeline makes it, that it goes in front of.
        after (str): The pass that it goes behind, if not in front of one.

    """

    module: str
    name: str
    call: str
    before: str = ""
    after: str = ""

    def apply(self, checkout: Checkout) -> None:
        statement = f"from .{self.module} import {self.name}  # noqa\n"
        if len(statement) > 89:
            statement = f"from .{self.module} import (  # noqa\n    {self.name},\n)\n"
        _insert_sorted(checkout, _PASSES, r"^from \.(\w+_pass) import", statement)
        _insert_sorted(checkout, _MANAGER, r"^    (\w+Pass),$", f"    {self.name},\n")
        neighbour = self.before or self.after
        lines = re.findall(
            rf"^ *{re.escape(neighbour)},\n", checkout.changed[_MANAGER], re.MULTILINE
        )
        anchor = lines[0] if lines else neighbour
        Hunk(
            _MANAGER,
            anchor,
            anchor.replace(neighbour, self.call),
            before=bool(self.before),
        ).apply(checkout)


def _insert_sorted(checkout: Checkout, path: str, pattern: str, added: str) -> None:
    """Insert a line in front of the first one that sorts behind it."""
    text = checkout.read(path) or ""
    (name,) = re.findall(pattern, added.splitlines()[0], re.MULTILINE)
    for match in re.finditer(pattern, text, re.MULTILINE):
        if match[1].lower() > name.lower():
            start = match.start()
            checkout.changed[path] = text[:start] + added + text[start:]
            return
        if match[1] == name:
            raise Refused(f"{path}: has {name} already")
    raise Refused(f"{path}: no list to put {name} into")


@dataclass(frozen=True)
class Change:
    """What becomes of one fix.

    Attributes:
        title (str): Subject of the commit, behind "Arm backend: ".
        body (str): What was missing, and what is done.
        sources (tuple): Files of ours that are copied, passes without a pipeline
            and what passes and checks share among them.
        passes (tuple): Passes that are copied and registered.
        hunks (tuple): What is changed in their files.
        tests (tuple): Files of ``tests`` beside this one, which go to ``test/ops``,
            or to the folder of ``test`` that is given with them.

    """

    title: str
    body: str
    sources: tuple[str, ...] = ()
    passes: tuple[Pass, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    tests: tuple[str, ...] = field(default=())

    def apply(self, checkout: Checkout) -> None:
        """Put the change into a checkout.

        Raises:
            Refused: Parts do not fit; every reason is named, and nothing is changed.

        """
        before = dict(checkout.changed)
        reasons = list(self._reasons(checkout))
        if reasons:
            checkout.changed = before
            raise Refused("\n".join(reasons))

    def _reasons(self, checkout: Checkout) -> Iterator[str]:
        for path, text in self._files():
            if checkout.read(path) not in (None, text):
                yield f"{path}: there is another file of this name"
            else:
                checkout.changed[path] = text
        parts: tuple[Pass | Hunk, ...] = (*self.passes, *self.hunks)
        for part in parts:
            try:
                part.apply(checkout)
            except Refused as refused:
                yield str(refused)

    def _files(self) -> Iterator[tuple[str, str]]:
        sources = [*self.sources, *(f"passes/{p.module}.py" for p in self.passes)]
        for source in sources:
            folder, name = source.split("/")
            text = (importlib.resources.files(f"arm_ext.{folder}") / name).read_text()
            yield _place(source), _renamed(text)
        tests = importlib.resources.files("arm_ext.upstream") / "tests"
        for test in self.tests:
            folder, _, name = test.rpartition("/")
            text = (tests / name).read_text()
            yield f"{ARM}/test/{folder or 'ops'}/{name}", _renamed(text)

    @property
    def message(self) -> str:
        return f"Arm backend: {self.title}\n\n{self.body}"


def _place(source: str) -> str:
    """Return where a file of ours goes."""
    folder, name = source.split("/")
    return f"{ELSEWHERE.get(source, FOLDERS[folder])}/{name}"


def _renamed(source: str) -> str:
    """Return a source of ours with the modules that it imports under their names."""

    def theirs(match: re.Match) -> str:
        module = _place(f"{match[1]}/{match[2]}.py").removesuffix(".py")
        return f"from executorch.{module.replace('/', '.')} import"

    return re.sub(r"from arm_ext\.(\w+)\.(\w+) import", theirs, source)
