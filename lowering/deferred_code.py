# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Generate the Python code of a GraphModule when somebody wants it.

A GraphModule has a ``forward`` generated from its graph, and every pass that
returns a new graph has it generated again. Passes interpret the graph, so in a
lowering hardly any of that code is ever run or read.

Inside :func:`deferred`, :func:`recompile` puts a descriptor in the place of
whatever a recompile writes (``forward``, ``code`` and what belongs to it). Whoever
looks at one of them, at whatever time, has the code generated then.

"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from torch.fx import GraphModule
from torch.fx.graph import _PyTreeCodeGen

_deferring: ContextVar[bool] = ContextVar("arm_ext_deferring", default=False)
_generating = threading.RLock()

# What a recompile writes into the module's own __dict__.
_DATA = ("_code", "_lineno_map", "_prologue_start")
# What it writes into the module's class, which no other module shares, and the
# methods that copy __dict__ before they recompile.
_METHODS = ("forward", "__reduce__", "__reduce_package__")
_CALL = "__call__"


@contextmanager
def deferred() -> Iterator[None]:
    """Defer the code of all modules that are recompiled inside the block."""
    token = _deferring.set(True)
    try:
        yield
    finally:
        _deferring.reset(token)


def recompile(module: GraphModule, generate: Callable[[], Any]) -> Any:
    """Recompile a module, inside :func:`deferred` on demand.

    Args:
        module (GraphModule): The module.
        generate (Callable): Torch's own ``recompile`` of the module.

    Returns:
        The generated ``PythonCode``, or an object with the same attributes.

    """
    _forget(type(module))
    if not _deferring.get() or _has_own_recompile(type(module)):
        return generate()
    if isinstance(module._graph._codegen, _PyTreeCodeGen):
        module._in_spec = module._graph._codegen.pytree_info.in_spec
        module._out_spec = module._graph._codegen.pytree_info.out_spec
    _put_descriptors(module, generate)
    module._recompile_submodules()
    return _PythonCodeOnDemand(generate)


def generate_now(module: GraphModule) -> None:
    """Generate the code of a module if it is still to be generated."""
    with _generating:
        pending = vars(type(module)).get("_code")
        if isinstance(pending, _OnDemand):
            _forget(type(module))
            pending.generate()


class _OnDemand:
    """Generates the code of a module and hands out one attribute of the result."""

    def __init__(
        self, name: str, module: GraphModule, generate: Callable[[], Any]
    ) -> None:
        self.generate = generate
        self._name = name
        self._module = module

    def __get__(self, instance: Any, owner: type) -> Any:
        generate_now(self._module)
        return getattr(owner if instance is None else instance, self._name)


class _OnDemandData(_OnDemand):
    """Also hides what the last recompile left in the instance's ``__dict__``."""

    def __set__(self, instance: Any, value: Any) -> None:
        generate_now(self._module)
        setattr(instance, self._name, value)


class _PythonCodeOnDemand:
    """Stands for the ``PythonCode`` that a recompile returns."""

    def __init__(self, generate: Callable[[], Any]) -> None:
        self._generate = generate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generate(), name)


def _put_descriptors(module: GraphModule, generate: Callable[[], Any]) -> None:
    cls = type(module)
    for name in _DATA:
        setattr(cls, name, _OnDemandData(name, module, generate))
    for name in _METHODS:
        setattr(cls, name, _OnDemand(name, module, generate))
    # The one of an earlier recompile calls whatever ``forward`` there is.
    if _CALL not in vars(cls):
        setattr(cls, _CALL, _OnDemand(_CALL, module, generate))


def _forget(cls: type) -> None:
    for name in (*_DATA, *_METHODS, _CALL):
        if isinstance(vars(cls).get(name), _OnDemand):
            delattr(cls, name)


def _has_own_recompile(cls: type) -> bool:
    return next(c for c in cls.__mro__ if "recompile" in vars(c)) is not GraphModule
