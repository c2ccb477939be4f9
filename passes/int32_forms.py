# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The int32 form of each op on int64: what to call instead, with int32 operands.

A form counts on values that fit int32, those on the way to the result among them; then
it gives what the int64 op does. ``integer_ranges`` tells for which ops that holds.

"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Protocol

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import Node
from torch.fx.node import map_aggregate, map_arg

_edge = exir_ops.edge.aten
_cast = exir_ops.edge.dim_order_ops._to_dim_order_copy.default

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


class Refused(Exception):
    """There is no int32 form, or nothing takes it; the message says why."""


class Emitter(Protocol):
    """What a form is built with."""

    def read(self, node: Node) -> Node:
        """Return the int32 that has the values of an integer tensor.

        Raises:
            Refused: There is none.

        """

    def insert(self, call: Call, value: torch.Tensor) -> Node:
        """Put a call, whose result is like ``value``, in front of the op.

        Raises:
            Refused: The partitioner does not take it.

        """


Form = Callable[[Node, Emitter], Call]


# Forms -------------------------------------------------------------------------------


def _same(node: Node, emitter: Emitter) -> Call:
    """The same op on int32."""
    args, kwargs = map_arg((node.args, node.kwargs), emitter.read)
    return node.target, map_aggregate(args, _as_integer), _with_int32(kwargs)


def _totals(node: Node, emitter: Emitter) -> Call:
    """An op that makes int64 of all integers, unless told otherwise."""
    target, args, kwargs = _same(node, emitter)
    return target, args, {**kwargs, "dtype": torch.int32}


def _total(node: Node, emitter: Emitter) -> Call:
    _, (x,), kwargs = _totals(node, emitter)
    return _edge.sum.dim_IntList, (x, list(range(x.meta["val"].dim()))), kwargs


def _constant(node: Node, emitter: Emitter) -> Call:
    """An op that reads no tensor."""
    args = map_aggregate(node.args, _as_integer)
    return node.target, args, {**node.kwargs, "dtype": torch.int32}


def _full(node: Node, emitter: Emitter) -> Call:
    """An op that reads nothing of a tensor but its shape."""
    shape = list(node.meta["val"].shape)
    if not all(isinstance(size, int) for size in shape):
        raise Refused("its shape is symbolic")
    return (
        _edge.full.default,
        (shape, _as_integer(node.args[1])),
        {"dtype": torch.int32},
    )


def _masked(mask: int) -> Form:
    """The same op on int32, with the mask beside, which is that argument."""

    def form(node: Node, emitter: Emitter) -> Call:
        args = [
            arg if place == mask else map_arg(arg, emitter.read)
            for place, arg in enumerate(node.args)
        ]
        return node.target, tuple(map(_as_integer, args)), dict(node.kwargs)

    return form


def _renamed(target: Any) -> Form:
    """Another op that does the same and that TOSA has."""

    def form(node: Node, emitter: Emitter) -> Call:
        return target, *_same(node, emitter)[1:]

    return form


def _not(target: Any) -> Form:
    """The opposite of a predicate."""

    def form(node: Node, emitter: Emitter) -> Call:
        opposite = emitter.insert(_renamed(target)(node, emitter), node.meta["val"])
        return _edge.logical_not.default, (opposite,), {}

    return form


def _cast_from_or_to_int64(node: Node, emitter: Emitter) -> Call:
    if node.all_input_nodes[0].meta["val"].dtype == torch.int64:
        return _same(node, emitter)
    return node.target, node.args, _with_int32(node.kwargs)


def _as_integer(value: Any) -> Any:
    """Return a float argument of an op on integers as the integer that it is."""
    if not isinstance(value, float):
        return value
    if not value.is_integer():
        raise Refused(f"the constant {value} is no integer")
    return int(value)


def _with_int32(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {
        name: torch.int32 if value == torch.int64 else value
        for name, value in kwargs.items()
    }


# Ops ---------------------------------------------------------------------------------

# Ops that hand on every element, each once and in another form or order.
WHOLE_MOVES = (
    _edge.alias_copy.default,
    _edge.clone.default,
    _edge.permute_copy.default,
    _edge.squeeze_copy.dim,
    _edge.squeeze_copy.dims,
    _edge.t_copy.default,
    _edge.transpose_copy.int,
    _edge.unsqueeze_copy.default,
    _edge.view_copy.default,
    exir_ops.edge.dim_order_ops._clone_dim_order.default,
)
# Ops that move the elements of their inputs and compute nothing.
MOVES = (
    *WHOLE_MOVES,
    _edge.cat.default,
    _edge.expand_copy.default,
    _edge.flip.default,
    _edge.repeat.default,
    _edge.select_copy.int,
    _edge.slice_copy.Tensor,
    _edge.split_copy.Tensor,
    _edge.split_with_sizes_copy.default,
    operator.getitem,
)

_INDEX_FORMS: dict[Any, Form] = {
    **dict.fromkeys(MOVES, _same),
    _cast: _cast_from_or_to_int64,
}

_ARITHMETIC_FORMS: dict[Any, Form] = {
    **dict.fromkeys(
        (
            _edge.abs.default,
            _edge.add.Scalar,
            _edge.add.Tensor,
            _edge.amax.default,
            _edge.amin.default,
            _edge.bitwise_and.Scalar,
            _edge.bitwise_and.Tensor,
            _edge.bitwise_left_shift.Tensor,
            _edge.bitwise_not.default,
            _edge.bitwise_or.Scalar,
            _edge.bitwise_or.Tensor,
            _edge.bitwise_right_shift.Tensor,
            _edge.bitwise_xor.Scalar,
            _edge.bitwise_xor.Tensor,
            _edge.clamp.Tensor,
            _edge.clamp.default,
            _edge.constant_pad_nd.default,
            _edge.div.Tensor_mode,
            _edge.eq.Scalar,
            _edge.eq.Tensor,
            _edge.floor_divide.default,
            _edge.ge.Scalar,
            _edge.ge.Tensor,
            _edge.gt.Scalar,
            _edge.gt.Tensor,
            _edge.le.Scalar,
            _edge.le.Tensor,
            _edge.lt.Scalar,
            _edge.lt.Tensor,
            _edge.maximum.default,
            _edge.minimum.default,
            _edge.mul.Scalar,
            _edge.mul.Tensor,
            _edge.neg.default,
            _edge.pow.Tensor_Scalar,
            _edge.remainder.Scalar,
            _edge.remainder.Tensor,
            _edge.sign.default,
            _edge.sub.Scalar,
            _edge.sub.Tensor,
            _edge.__lshift__.Scalar,
            _edge.__rshift__.Scalar,
        ),
        _same,
    ),
    **dict.fromkeys((_edge.arange.start_step, _edge.full.default), _constant),
    **dict.fromkeys((_edge.cumsum.default, _edge.sum.dim_IntList), _totals),
    _edge.full_like.default: _full,
    _edge.masked_fill.Scalar: _masked(1),
    _edge.ne.Scalar: _not(_edge.eq.Scalar),
    _edge.ne.Tensor: _not(_edge.eq.Tensor),
    _edge.sum.default: _total,
    _edge.where.self: _masked(0),
    _edge.__lshift__.Tensor: _renamed(_edge.bitwise_left_shift.Tensor),
    _edge.__rshift__.Tensor: _renamed(_edge.bitwise_right_shift.Tensor),
}


_MADE = (torch.int64, torch.bool)


def int32_form(node: Node, arithmetic: bool) -> Form | None:
    """Return the int32 form of an op, or None if none is known.

    Args:
        node (Node): Reads or makes int64.
        arithmetic (bool): False for moves and casts only.

    """
    if node.target in _INDEX_FORMS:
        return _INDEX_FORMS[node.target]
    if not arithmetic or node.target not in _ARITHMETIC_FORMS:
        return None
    made = node.meta["val"].dtype
    return _ARITHMETIC_FORMS[node.target] if made in _MADE else None


def names_of_arithmetic() -> list[str]:
    """Return the names of the ops that compute and have a form, no overload twice."""
    return sorted({op.__name__.rsplit(".", 1)[0] for op in _ARITHMETIC_FORMS})
