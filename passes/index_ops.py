# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The index ops of the ATen and edge dialects in one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import Node

_aten = torch.ops.aten
_edge = exir_ops.edge.aten


@dataclass(frozen=True)
class IndexOp:
    """An op that reads or writes the elements of ``source`` at constant places.

    Attributes:
        source (Node): The tensor that is indexed.
        indices (tuple[Node | None, ...]): As in ``source[indices]``: one entry a
            leading dimension (a mask: several). One entry only if ``dim`` is set.
        dim (int | None): Set where the index holds a place for each element, as
            in ``gather`` and ``scatter``: the dimension it counts along.
        values (Node | bool | int | float | None): What is written; None for a read.
        accumulate (bool): Whether what is written is added.

    """

    source: Node
    indices: tuple[Node | None, ...]
    dim: int | None = None
    values: Any = None
    accumulate: bool = False

    @property
    def is_write(self) -> bool:
        return self.values is not None

    @property
    def shape(self) -> torch.Size:
        return self.source.meta["val"].shape


def _index(source: Node, indices: Any) -> IndexOp:
    return IndexOp(source, tuple(indices))


def _index_select(source: Node, dim: int, index: Node) -> IndexOp:
    rank = source.meta["val"].dim()
    return IndexOp(source, (None,) * (dim % max(rank, 1)) + (index,))


def _embedding(weight: Node, indices: Node, *options: Any) -> IndexOp:
    return IndexOp(weight, (indices,))


def _gather(source: Node, dim: int, index: Node, **options: Any) -> IndexOp:
    return IndexOp(source, (index,), dim=dim % max(source.meta["val"].dim(), 1))


def _index_put(
    source: Node, indices: Any, values: Node, accumulate: bool = False
) -> IndexOp:
    return IndexOp(source, tuple(indices), values=values, accumulate=accumulate)


def _scatter(source: Node, dim: int, index: Node, values: Any) -> IndexOp:
    dim %= max(source.meta["val"].dim(), 1)
    return IndexOp(source, (index,), dim=dim, values=values)


def _scatter_add(source: Node, dim: int, index: Node, values: Node) -> IndexOp:
    dim %= max(source.meta["val"].dim(), 1)
    return IndexOp(source, (index,), dim=dim, values=values, accumulate=True)


SCATTER_OPS = {
    _aten.scatter.src: _scatter,
    _aten.scatter.value: _scatter,
    _aten.scatter_add.default: _scatter_add,
}

EDGE_INDEX_OPS = {
    _edge.index.Tensor: _index,
    _edge.index_select.default: _index_select,
    _edge.embedding.default: _embedding,
    _edge.gather.default: _gather,
    _edge.index_put.default: _index_put,
    _edge.scatter.src: _scatter,
    _edge.scatter.value: _scatter,
    _edge.scatter_add.default: _scatter_add,
}


def match(node: Node, ops: dict[Any, Any] = EDGE_INDEX_OPS) -> IndexOp | None:
    """Return the index op that ``node`` is, or None."""
    if node.op != "call_function" or node.target not in ops:
        return None
    return ops[node.target](*node.args, **node.kwargs)
