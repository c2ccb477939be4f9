# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Applies the table of fixes to the installed executorch and takes it back."""

import difflib
import importlib.metadata
import logging
import threading
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from arm_ext.fix import Fix, Installed, Need, State, TABLE
from arm_ext.patcher import Patcher, SymbolMismatch
from packaging.version import Version

logger = logging.getLogger("arm_ext")


@dataclass(frozen=True)
class Row:
    """What became of one fix: its name, its gap, the state and the reason."""

    fix: str
    gap: str
    state: State
    reason: str


class Status(tuple[Row, ...]):
    """A sequence of :class:`Row` that prints as a table."""

    def __str__(self) -> str:
        from arm_ext._table import render

        return render(
            ("fix", "gap", "state", "reason"),
            [(row.fix, row.gap, str(row.state), row.reason) for row in self],
        )

    __repr__ = __str__


@dataclass(frozen=True)
class Selection:
    """Which fixes the caller wants; None for ``only`` means all of them."""

    only: frozenset[str] | None = None
    disable: frozenset[str] = frozenset()
    strict: bool = False

    def why_not(self, fix: Fix) -> str | None:
        """Return why a fix is not to be applied, None if it is."""
        if fix.name in self.disable or (
            self.only is not None and fix.name not in self.only
        ):
            return "switched off by the caller"
        if self.strict and fix.lenient:
            return "strict mode raises where the fix goes on"
        return None


def check_names(names: Collection[str], source: str) -> frozenset[str]:
    """Return the names as a set, or raise ValueError for an unknown one."""
    known = [fix.name for fix in TABLE]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"{source}: no fix is named {name!r}{hint} "
                f"(the fixes are {', '.join(known)})"
            )
    return frozenset(names)


def installed_versions() -> Installed | None:
    """Return the installed versions, or None where executorch is missing."""
    try:
        return Installed(
            executorch=Version(importlib.metadata.version("executorch")),
            torch=Version(importlib.metadata.version("torch")),
        )
    except importlib.metadata.PackageNotFoundError:
        return None


class _Applied:
    """What is applied now. One instance a process, guarded by one lock."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.selection: Selection | None = None
        self._patchers: list[Patcher] = []
        self._needs: dict[str, Need] = {}

    def apply(self, selection: Selection) -> None:
        with self.lock:
            if selection == self.selection:
                return
            self.revert()
            installed = installed_versions()
            self._needs = {
                fix.name: self._apply_one(fix, selection, installed) for fix in TABLE
            }
            self.selection = selection
            self._say()

    def _apply_one(
        self, fix: Fix, selection: Selection, installed: Installed | None
    ) -> Need:
        if reason := selection.why_not(fix):
            return Need(State.DISABLED, reason)
        if installed is None:
            return Need(State.SKIPPED, "executorch is not installed")
        patcher = Patcher()
        try:
            module = fix.load()
            needs = getattr(module, "needs", None)
            need = needs(installed) if needs else Need(State.APPLIED)
            if need.state is State.APPLIED:
                module.install(patcher)
        except (SymbolMismatch, ImportError, AttributeError) as error:
            # A fix is applied whole or not at all.
            patcher.undo()
            return Need(State.SKIPPED, f"does not fit this executorch: {error}")
        except BaseException:
            patcher.undo()
            raise
        self._patchers.append(patcher)
        return need

    def _say(self) -> None:
        applied = [n for n, need in self._needs.items() if need.state is State.APPLIED]
        logger.info("arm_ext applied: %s", ", ".join(applied) or "nothing")
        for name, need in self._needs.items():
            if need.state is State.SKIPPED and need.reason.startswith("does not fit"):
                warnings.warn(f"arm_ext: {name} skipped: {need.reason}", stacklevel=5)

    def revert(self) -> None:
        with self.lock:
            while self._patchers:
                self._patchers.pop().undo()
            self.selection = None
            self._needs = {}

    def status(self) -> Status:
        with self.lock:
            off = Need(State.OFF, "not applied; call arm_ext.apply()")
            return Status(
                Row(fix.name, fix.gap, need.state, need.reason)
                for fix in TABLE
                for need in (self._needs.get(fix.name, off),)
            )


_applied = _Applied()


def apply(
    *,
    only: Collection[str] | None = None,
    disable: Collection[str] = (),
    strict: bool = False,
) -> Status:
    """Patch the installed executorch with every fix that it needs.

    Applying what is applied already does nothing; applying another selection
    takes the previous one back first. Safe to call from several threads.

    Args:
        only (Collection[str] | None): Names of the fixes to apply; all when None.
        disable (Collection[str]): Names of fixes to leave out.
        strict (bool): Raise what the passes, the serializer and the compilers raise,
            where the lowering would go on with nodes left on the CPU.

    Returns:
        Status: One row a fix: name, gap, state and reason.

    Raises:
        ValueError: A name is not in the table.

    """
    selection = Selection(
        only=None if only is None else check_names(only, "only"),
        disable=check_names(disable, "disable"),
        strict=strict,
    )
    with _applied.lock:
        _applied.apply(selection)
        return _applied.status()


def revert() -> None:
    """Take every change back: each symbol is the identical object it was."""
    _applied.revert()


@contextmanager
def patched(
    *,
    only: Collection[str] | None = None,
    disable: Collection[str] = (),
    strict: bool = False,
) -> Iterator[Status]:
    """Apply a selection for the length of a ``with`` block.

    ``patched(only=())`` is the stock executorch. What was applied before is
    applied again on leaving, whether the block raised or not.

    """
    before = _applied.selection
    try:
        yield apply(only=only, disable=disable, strict=strict)
    finally:
        revert()
        if before is not None:
            _applied.apply(before)


def status() -> Status:
    """Return one row a fix: name, gap, state and reason. Prints as a table."""
    return _applied.status()
