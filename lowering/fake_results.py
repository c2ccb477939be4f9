# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Compute the fake result of an op once.

A pass that retraces a graph runs every op on fake tensors, also those that it
leaves alone: in a pipeline of passes the same ops on the same shapes, over and
over. A fake tensor has no data, so what an op returns follows from the op, the
layout of its tensors and the values of its other arguments.

Inside :func:`remembered`, :func:`call` makes the result from the layout of what the
op returned for the same arguments before: always new fake tensors, as the op would
return. Torch's own cache of fake results lies below the dispatcher, which costs more
than the ops themselves, and takes none of the Arm and the quantization ops.

No tensor is kept. A factory such as ``full_like`` hands out its result as it is if
nobody else holds it, and an alias of it otherwise, which a trace would record.

"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Optional

import torch
from torch._C import _is_alias_of  # type: ignore[attr-defined]  # not in the stubs
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import (
    FakeTensor,
    FakeTensorMode,
    in_kernel_invocation_manager,
)

_Results = dict[tuple, Any]
_results: ContextVar[Optional[tuple[_Results, Hashable]]] = ContextVar(
    "arm_ext_fake_results", default=None
)

_VALUES = (bool, int, str, torch.dtype, torch.device, torch.layout, torch.memory_format)


@contextmanager
def remembered(context: Hashable = None) -> Iterator[None]:
    """Remember results until the end of the outermost block.

    Args:
        context (Hashable): What the results of ops depend on beside their
            arguments, such as a TOSA specification.

    """
    active = _results.get()
    token = _results.set((active[0] if active else {}, context))
    try:
        yield
    finally:
        _results.reset(token)


def call(
    target: Any,
    args: tuple,
    kwargs: dict,
    run: Callable[[], Any],
    spare: Any = None,
) -> Any:
    """Return ``run()``, or the same made from an earlier result.

    Args:
        target (Any): The op that ``run`` calls.
        args (tuple): Its arguments.
        kwargs (dict): Its keyword arguments.
        run (Callable): Calls the op.
        spare (Any): A fake tensor that nobody needs any longer. It is handed out,
            with its memory to itself, instead of a new one of its layout.

    """
    if _results.get() is None:
        return run()
    mode = _only_active_mode()
    if mode is None:
        return run()
    return _recall((target, mode, "call"), args, kwargs, run, spare)


def call_in(
    mode: FakeTensorMode,
    target: Any,
    args: tuple,
    kwargs: dict,
    run: Callable[[], Any],
) -> Any:
    """Do what :func:`call` does, for an op that ``mode`` handles.

    The op is then past autograd: the same arguments may give another result.

    """
    return _recall((target, mode, "dispatched"), args, kwargs, run)


def _recall(
    op: tuple, args: tuple, kwargs: dict, run: Callable[[], Any], spare: Any = None
) -> Any:
    active = _results.get()
    if active is None or not _is_functional(op[0]):
        return run()
    results, context = active
    key, tensors = _key((op, context), args, kwargs)
    if key is None:
        return run()
    known = results.get(key)
    if known is not None:
        return spare if _is_made(spare, known, tensors) else _renew(known)
    result = run()
    if _can_be_made(result, tensors):
        results[key] = _description(result)
    return result


def _is_functional(target: Any) -> bool:
    """Whether an op (of ATen or of the edge dialect) returns new tensors only."""
    op = target if isinstance(target, OpOverload) else getattr(target, "_op", None)
    if not isinstance(op, OpOverload):
        return False
    schema = op._schema
    return not schema.is_mutable and not any(r.alias_info for r in schema.returns)


def _only_active_mode() -> Optional[FakeTensorMode]:
    """Return the active mode if it is a fake mode and no other is.

    A mode that records or replaces calls has to see them.

    """
    if torch._C._len_torch_dispatch_stack() != 1:
        return None
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)


def _key(
    op: Hashable, args: tuple, kwargs: dict
) -> tuple[Optional[tuple], list[FakeTensor]]:
    """Return what a result follows from, None where that cannot be said."""
    python_kernels = torch._C._dispatch_tls_is_dispatch_key_included(
        torch._C.DispatchKey.PythonDispatcher
    )
    key: list[Any] = [op, torch.is_grad_enabled(), python_kernels]
    tensors: list[FakeTensor] = []
    to_visit: list[Any] = [kwargs, args]
    while to_visit:
        value = to_visit.pop()
        if isinstance(value, FakeTensor):
            if not _has_plain_layout(value):
                return None, tensors
            tensors.append(value)
            key.append((*_Layout.of(value), value.storage_offset()))
        elif value is None or type(value) in _VALUES:
            key.append((type(value), value))
        elif type(value) is float:
            key.append(repr(value))  # nan equals nan, 0.0 is not -0.0
        elif isinstance(value, (list, tuple)):
            key.append((type(value), len(value)))
            to_visit.extend(value)
        elif isinstance(value, dict):
            key.append(tuple(value))
            to_visit.extend(value.values())
        else:
            return None, tensors
    return tuple(key), tensors


class _Layout(NamedTuple):
    """What a fake tensor is made from."""

    mode: FakeTensorMode
    device: torch.device
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    requires_grad: bool

    @classmethod
    def of(cls, tensor: FakeTensor) -> _Layout:
        return cls(
            tensor.fake_mode,
            tensor.device,
            tuple(tensor.shape),
            tensor.stride(),
            tensor.dtype,
            tensor.requires_grad,
        )

    def make(self) -> FakeTensor:
        with in_kernel_invocation_manager(self.mode):
            empty = torch.empty_strided(
                self.shape,
                self.stride,
                dtype=self.dtype,
                device="meta",
                requires_grad=self.requires_grad,
            )
        return FakeTensor(self.mode, empty, self.device)


def _has_plain_layout(tensor: FakeTensor) -> bool:
    return (
        not tensor._has_symbolic_sizes_strides
        and tensor.constant is None
        and tensor.real_tensor is None
        and tensor.layout is torch.strided
        and not (tensor.is_conj() or tensor.is_neg())
    )


def _can_be_made(result: Any, arguments: list[FakeTensor]) -> bool:
    if type(result) in (list, tuple):
        return all(_can_be_made(element, arguments) for element in result)
    return type(result) is int or (
        type(result) is FakeTensor
        and _has_plain_layout(result)
        and result.storage_offset() == 0
        and not any(_is_alias_of(result, other) for other in arguments)
    )


def _description(result: Any) -> Any:
    if type(result) in (list, tuple):
        return type(result)(map(_description, result))
    return result if type(result) is int else _Layout.of(result)


def _is_made(spare: Any, description: Any, arguments: list[FakeTensor]) -> bool:
    return (
        type(spare) is FakeTensor
        and _can_be_made(spare, arguments)
        and _Layout.of(spare) == description
    )


def _renew(description: Any) -> Any:
    if type(description) in (list, tuple):
        return type(description)(map(_renew, description))
    return description if type(description) is int else description.make()
