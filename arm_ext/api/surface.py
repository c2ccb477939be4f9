# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What a package exports: from its source, or from its imported objects.

The source is read by Griffe and shows annotations and defaults as they are written.
It does not show what a patch puts in their place; :func:`runtime` does, in the
process that it runs in.

"""

from __future__ import annotations

import enum
import importlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from arm_ext.api.manifest import Entry, Lifecycle

# Public modules, and the lifecycle that a new name in them starts with.
PUBLIC = {
    "arm_ext": Lifecycle.STABLE,
    "arm_ext.partitioner": Lifecycle.STABLE,
    "arm_ext.coverage": Lifecycle.EXPERIMENTAL,
    "arm_ext.verify": Lifecycle.EXPERIMENTAL,
}
_ROOT = Path(__file__).parents[2]


def own() -> dict[str, Entry]:
    """Return what ``arm_ext`` exports, read from its source by Griffe."""
    entries: dict[str, Entry] = {}
    for name, lifecycle in PUBLIC.items():
        module = _find(name)
        for exported in map(str, module.exports or ()):
            member = module.members[exported]
            if member.is_alias:
                member = _find(member.target_path)
            for path, stub in _static(f"{name}.{exported}", member):
                entries[path] = Entry(stub, lifecycle)
    return entries


def _find(path: str) -> Any:
    """Return an object of this package; its folders may lie beside ``arm_ext/``."""
    import griffe

    parts = path.removeprefix("arm_ext").lstrip(".").split(".")
    beside = (_ROOT / parts[0]).is_dir() and parts != [""]
    found = griffe.load(parts.pop(0) if beside else "arm_ext", search_paths=[_ROOT])
    for part in filter(None, parts):
        found = found.members[part]
    return found


def _static(path: str, member: Any) -> Iterator[tuple[str, str]]:
    if member.is_class:
        bases = ", ".join(map(str, member.bases))
        yield path, f"class {member.name}{f'({bases})' if bases else ''}: ..."
        for name, inner in member.members.items():
            # What a dataclass is called with is generated, and public.
            if name == "__init__" or not name.startswith("_"):
                yield from _static(f"{path}.{name}", inner)
    elif member.is_function:
        text = _signature(_declaration(p) for p in member.parameters)
        returns = f" -> {member.returns}" if member.returns else ""
        yield path, f"def {member.name}{text}{returns}: ..."
    else:
        annotation = f": {member.annotation}" if member.annotation else ""
        # What an instance is given is no part of the interface, a constant is.
        fixed = member.value is not None and "class-attribute" in member.labels
        value = f" = {member.value}" if fixed else "" if annotation else " = ..."
        yield path, f"{member.name}{annotation}{value}"


def _declaration(parameter: Any) -> tuple[str, Any, str]:
    kind = getattr(inspect.Parameter, parameter.kind.name.upper())
    annotation = f": {parameter.annotation}" if parameter.annotation else ""
    variadic = "VAR" in parameter.kind.name.upper()
    default = f" = {parameter.default}" if parameter.default and not variadic else ""
    return parameter.name, kind, f"{annotation}{default}"


def _signature(parameters: Iterable[tuple[str, Any, str]]) -> str:
    """Format parameters given as name, kind, and what follows the name."""
    given = list(parameters)
    bare = inspect.Signature(
        [inspect.Parameter(name, kind) for name, kind, _ in given],
        __validate_parameters__=False,
    )
    # ``inspect`` knows where ``/`` and ``*`` go; names hold no comma.
    text = str(bare)[1:-1]
    parts = text.split(", ") if text else []
    declarations = {name: declaration for name, _, declaration in given}
    return "(" + ", ".join(p + declarations.get(p.lstrip("*"), "") for p in parts) + ")"


def runtime(modules: Mapping[str, list[str]]) -> dict[str, Entry]:
    """Return the named objects as this process has them, patched or not.

    Annotations are left out: they have no say in which calls work.

    Args:
        modules (Mapping[str, list[str]]): Module names, and what they export.

    """
    entries: dict[str, Entry] = {}
    for module, names in modules.items():
        loaded = importlib.import_module(module)
        for name in names:
            for path, stub in _live(f"{module}.{name}", name, getattr(loaded, name)):
                entries[path] = Entry(stub)
    return entries


def arm_backend() -> dict[str, list[str]]:
    """Return the public modules of the installed Arm backend and their exports."""
    backend = importlib.import_module("executorch.backends.arm")
    modules = {"executorch.backends.arm": sorted(backend.LAZY_IMPORTS)}
    for name in sorted({module for module, _ in backend.LAZY_IMPORTS.values()}):
        exported = getattr(importlib.import_module(name), "__all__", ())
        modules[name] = sorted(exported)
    return modules


def _live(path: str, name: str, value: Any) -> Iterator[tuple[str, str]]:
    if inspect.isclass(value):
        yield path, f"class {name}: ..."
        members = list(value) if issubclass(value, enum.Enum) else []
        for member in members:
            yield f"{path}.{member.name}", f"{member.name} = {member.value!r}"
        for inner, attribute in inspect.getmembers_static(value):
            public = inner == "__init__" or not inner.startswith("_")
            if public and inner not in {m.name for m in members}:
                yield from _live_member(f"{path}.{inner}", inner, attribute)
    elif callable(value):
        yield path, f"def {name}{_parameters(value)}: ..."
    else:
        yield path, f"{name} = ..."


def _live_member(path: str, name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if callable(value) and not inspect.isclass(value):
        yield path, f"def {name}{_parameters(value)}: ..."
    else:  # a property, a field or a constant
        yield path, f"{name} = ..."


def _parameters(value: Any) -> str:
    try:
        signature = inspect.signature(value, follow_wrapped=False)
    except ValueError:  # written in C, without a signature
        return "(*args, **kwargs)"
    return _signature(
        (
            p.name,
            p.kind,
            "" if p.default is p.empty else f" = {_literal(p.default)}",
        )
        for p in signature.parameters.values()
    )


def _literal(value: Any) -> str:
    """Return a default as code where that is short and the same each time."""
    plain = isinstance(value, (bool, int, float, str, bytes, type(None)))
    return repr(value) if plain else "..."
