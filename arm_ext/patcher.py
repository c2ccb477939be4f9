# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The one place that changes somebody else's module, and can undo it.

A symbol is written ``"package.module:Class.attribute"``. Each verb looks the
symbol up, compares it with the shape its caller expects and raises
:class:`SymbolMismatch`, which names the symbol and the difference, before it
changes anything. :meth:`Patcher.undo` walks the changes backwards, so that
every symbol ends as the identical object it was.

"""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Set

import wrapt

_MISSING = object()


class SymbolMismatch(Exception):
    """A symbol to patch is missing or is not what the fix was written for."""


@dataclass(frozen=True)
class Change:
    """One change made, and the call that takes it back."""

    symbol: str
    undo: Callable[[], None]


def _resolve(symbol: str) -> tuple[Any, str]:
    """Return the owner (module or class) of ``symbol`` and the last name."""
    module_name, _, qualname = symbol.partition(":")
    try:
        owner: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise SymbolMismatch(f"{module_name} cannot be imported: {error}") from error
    *path, name = qualname.split(".")
    for step in path:
        if not hasattr(owner, step):
            raise SymbolMismatch(f"{symbol} does not exist: no {step!r} in {owner!r}")
        owner = getattr(owner, step)
    return owner, name


def _original(symbol: str) -> tuple[Any, str, Any]:
    """Return owner, name and the raw attribute, descriptors not bound."""
    owner, name = _resolve(symbol)
    value = inspect.getattr_static(owner, name, _MISSING)
    if value is _MISSING:
        raise SymbolMismatch(f"{symbol} does not exist")
    return owner, name, value


def _check_parameters(symbol: str, function: Any, expected: tuple[str, ...]) -> None:
    function = getattr(function, "__func__", function)
    if not callable(function):
        raise SymbolMismatch(f"{symbol} is not callable")
    found = tuple(inspect.signature(function).parameters)
    if found != expected:
        raise SymbolMismatch(
            f"{symbol} takes ({', '.join(found)}), expected ({', '.join(expected)})"
        )


def _rebind(old: Any, new: Any) -> None:
    """Point every module-level name that holds ``old`` at ``new``.

    ``from module import function`` copies the reference; without this, code
    imported before the patch would keep the stock function, and code imported
    under the patch would keep ours after the undo.

    """
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType):
            continue
        for name, value in list(vars(module).items()):
            if value is old:
                setattr(module, name, new)


class Patcher:
    """Changes symbols of other packages; :meth:`undo` restores all of them."""

    def __init__(self) -> None:
        self._changes: list[Change] = []

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols changed so far, in order."""
        return tuple(change.symbol for change in self._changes)

    def set(self, symbol: str, value: Any, *, everywhere: bool = True) -> None:
        """Replace an existing attribute of a module or class by ``value``.

        Args:
            symbol (str): The attribute to replace.
            value (Any): What to put there.
            everywhere (bool): For a module-level function or class: also replace
                it in the modules that imported it. False changes the one module
                only, as is always done for other values: a constant is equal to
                many that have nothing to do with it.

        Raises:
            SymbolMismatch: The symbol does not exist.

        """
        owner, name, original = _original(symbol)
        inherited = name not in vars(owner)
        copied = isinstance(owner, ModuleType) and callable(original)

        def put(new: Any, old: Any) -> None:
            if everywhere and copied and callable(value):
                _rebind(old, new)
            if new is original and inherited:
                delattr(owner, name)
            else:
                setattr(owner, name, new)

        def undo() -> None:
            if inspect.getattr_static(owner, name, _MISSING) is not value:
                warnings.warn(
                    f"{symbol} was changed again by other code after arm_ext "
                    "changed it; the original is restored over both",
                    stacklevel=2,
                )
            put(original, value)

        put(value, original)
        self._changes.append(Change(symbol, undo))

    def wrap(
        self,
        symbol: str,
        wrapper: Callable[[Any, Any, tuple, dict], Any],
        *,
        parameters: tuple[str, ...],
    ) -> None:
        """Wrap a function or method.

        Args:
            symbol (str): The function to wrap.
            wrapper (Callable): ``wrapper(wrapped, instance, args, kwargs)`` as
                in ``wrapt``; ``wrapped`` is bound.
            parameters (tuple[str, ...]): The parameter names of the function
                the wrapper was written for, ``self`` included.

        Raises:
            SymbolMismatch: The symbol does not exist or takes other parameters.

        """
        _, _, original = _original(symbol)
        _check_parameters(symbol, original, parameters)
        self.set(symbol, wrapt.FunctionWrapper(original, wrapper))

    def extend(self, symbol: str, items: Iterable[Any] | Mapping[Any, Any]) -> None:
        """Add items to a module-level or class-level list, set or dict.

        What a set or list already holds is left alone; a dict key that is
        already there is a mismatch, because its value is not ours to decide.

        Raises:
            SymbolMismatch: The symbol is missing, is of another type, or a key
                is taken.

        """
        _, _, container = _original(symbol)
        if isinstance(container, dict):
            self._extend_dict(symbol, container, dict(items))
        elif isinstance(container, (list, set)):
            self._extend_collection(symbol, container, items)
        else:
            raise SymbolMismatch(
                f"{symbol} is a {type(container).__name__}, expected list, set or dict"
            )

    def _extend_dict(self, symbol: str, container: dict, items: dict) -> None:
        taken = [key for key in items if key in container]
        if taken:
            raise SymbolMismatch(f"{symbol} already has {taken}")

        def undo() -> None:
            for key in items:
                container.pop(key, None)

        container.update(items)
        self._changes.append(Change(symbol, undo))

    def _extend_collection(
        self, symbol: str, container: list | Set, items: Iterable[Any]
    ) -> None:
        added = [item for item in items if item not in container]

        def undo() -> None:
            for item in added:
                if item in container:
                    container.remove(item)

        if isinstance(container, set):
            container.update(added)
        else:
            container.extend(added)
        self._changes.append(Change(symbol, undo))

    def register(
        self, description: str, do: Callable[[], Any], undo: Callable[[], Any]
    ) -> None:
        """Make a registration through the backend's own public call.

        Args:
            description (str): What is registered, for the list of changes.
            do (Callable): Makes the registration.
            undo (Callable): Takes it back; called once.

        """
        do()
        self._changes.append(Change(description, undo))

    def undo(self) -> None:
        """Take back every change, the newest first."""
        while self._changes:
            self._changes.pop().undo()
