# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Evaluate the nodes of a graph that depend on constants only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast, TypeGuard

import torch
from executorch.exir import ExportedProgram
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from torch._export.utils import (
    get_buffer,
    get_lifted_tensor_constant,
    get_param,
    is_buffer,
    is_lifted_tensor_constant,
    is_param,
)
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

# The largest tensor worth computing at compile time, in elements.
_MAX_NUMEL = 1 << 24

# Integer casts say how an index is stored, not what it means; a narrowing cast
# is skipped so that a value outside the new type is seen, not wrapped.
_CASTS = ("aten::_to_copy", "aten::to", "dim_order_ops::_to_dim_order_copy")


class NotConstant(Exception):
    """A node depends on something that is known only at run time."""


class MutableConstant(NotConstant):
    """A node depends on a buffer that the program writes."""


def program_constant(program: ExportedProgram, node: Node) -> torch.Tensor:
    """Return the value of a constant placeholder of an exported program."""
    if is_buffer(program, node):
        signature = program.graph_signature
        name = signature.inputs_to_buffers[node.name]
        if name in signature.buffers_to_mutate.values():
            raise MutableConstant(f"buffer {name!r} is written by the program")
        value = get_buffer(program, node)
    elif is_param(program, node):
        value = get_param(program, node)
    elif is_lifted_tensor_constant(program, node):
        value = get_lifted_tensor_constant(program, node)
    else:
        raise NotConstant(f"{node.name} is an input")
    if value is None:
        raise NotConstant(f"{node.name} has no value")
    return value.detach()


def module_constant(graph_module: GraphModule, node: Node) -> torch.Tensor:
    """Return the value of a ``get_attr`` node of an unlifted graph module."""
    if node.op != "get_attr":
        raise NotConstant(f"{node.name} is an input")
    *path, name = str(node.target).split(".")
    value = getattr(graph_module.get_submodule(".".join(path)), name, None)
    if not isinstance(value, torch.Tensor):
        raise NotConstant(f"{node.name} is not a tensor")
    if any(_writes_to(user, twin) for twin in _twins(node) for user in twin.users):
        raise MutableConstant(f"buffer {str(node.target)!r} is written by the program")
    return value.detach()


def _twins(node: Node) -> Iterator[Node]:
    return (other for other in node.graph.find_nodes(op="get_attr", target=node.target))


def _writes_to(user: Node, node: Node) -> bool:
    schema = getattr(user.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return False
    return any(
        given is node and argument.is_write
        for given, argument in zip(user.args, schema.arguments)
    )


class ConstantEvaluator:
    """Computes, once each, the nodes that depend on constants only.

    Args:
        constant (Callable[[Node], torch.Tensor]): Returns the value of a
            placeholder or ``get_attr`` node, or raises :class:`NotConstant`.

    """

    def __init__(self, constant: Callable[[Node], torch.Tensor]) -> None:
        self._constant = constant
        self._known: dict[Node, torch.Tensor | NotConstant] = {}

    def value(self, node: Node) -> torch.Tensor:
        """Return the value of ``node``.

        The value of a cast from int64 to a narrower integer type is returned as wide
        as it was made.

        Raises:
            NotConstant: The node depends on an input, on a buffer that the
                program writes (:class:`MutableConstant`), or on an op that is
                not a pure function.

        """
        if node not in self._known:
            try:
                self._known[node] = self._compute(node)
            except NotConstant as error:
                self._known[node] = error
        known = self._known[node]
        if isinstance(known, NotConstant):
            raise known
        return known

    def is_constant(self, node: Node) -> bool:
        """Whether a node has a value that is known and stays."""
        try:
            self.value(node)
        except NotConstant:
            return False
        return True

    def _read(self, node: Node) -> torch.Tensor:
        """Return a value as the ops behind it see it, wrapped by a narrowing cast."""
        value, made = self.value(node), node.meta.get("val")
        return value if made is None else value.to(made.dtype)

    def _compute(self, node: Node) -> torch.Tensor:
        if node.op != "call_function":
            return self._constant(node)
        op = node.target
        if isinstance(op, EdgeOpOverload):
            op = op._op
        if not _is_pure(op) or not _is_small(node):
            raise NotConstant(f"{node.name} is not computed at compile time")
        given = torch.fx.node.map_arg((node.args, node.kwargs), self._read)
        args, kwargs = cast(tuple[tuple[Any, ...], dict[str, Any]], given)
        if op._schema.name in _CASTS and _narrows_integers(args[0], node):
            return args[0]
        with torch.no_grad():
            return op(*args, **kwargs)


def _is_pure(op: object) -> TypeGuard[OpOverload]:
    return (
        isinstance(op, OpOverload)
        and not op._schema.is_mutable
        and torch.Tag.nondeterministic_seeded not in op.tags
        and "empty" not in op._schema.name
    )


def _is_small(node: Node) -> bool:
    value = node.meta.get("val")
    return (
        isinstance(value, torch.Tensor)
        and all(isinstance(size, int) for size in value.shape)
        and value.numel() <= _MAX_NUMEL
    )


def _narrows_integers(value: torch.Tensor, node: Node) -> bool:
    to = node.meta["val"].dtype
    return (
        value.dtype == torch.int64
        and not to.is_floating_point
        and not to.is_complex
        and to != torch.bool
    )
