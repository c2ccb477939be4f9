# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The index ops of the ATen and edge dialects in one form.

A *place* below is what an index tensor becomes once it is checked: an integer
tensor with values in ``[0, size)``, the node itself if its value is known only at
run time, or None for a dimension that is skipped.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import Node

from .constant_evaluator import ConstantEvaluator, MutableConstant, NotConstant
from .constant_index import (
    expand_masks,
    index_every_leading_dim,
    index_of_each_element,
    IndexRefused,
    normalize,
    selects_no_place_twice,
)

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

    @property
    def index(self) -> Node:
        """The only index, of an op that has ``dim``."""
        return cast(Node, self.indices[0])


def _index(source: Node, indices: Any) -> IndexOp:
    return IndexOp(source, tuple(indices))


def _index_select(source: Node, dim: int, index: Node) -> IndexOp:
    rank = source.meta["val"].dim()
    return IndexOp(source, (None,) * (dim % max(rank, 1)) + (index,))


def _embedding(
    weight: Node, indices: Node, *options: Any, **more_options: Any
) -> IndexOp:
    return IndexOp(weight, (indices,))


def _gather(source: Node, dim: int, index: Node, **options: Any) -> IndexOp:
    return IndexOp(source, (index,), dim=dim % max(source.meta["val"].dim(), 1))


def _index_put(
    source: Node, indices: Any, values: Node, accumulate: bool = False
) -> IndexOp:
    return IndexOp(source, tuple(indices), values=values, accumulate=accumulate)


def scatter(source: Node, dim: int, index: Node, values: Any) -> IndexOp:
    dim %= max(source.meta["val"].dim(), 1)
    return IndexOp(source, (index,), dim=dim, values=values)


def scatter_add(source: Node, dim: int, index: Node, values: Node) -> IndexOp:
    dim %= max(source.meta["val"].dim(), 1)
    return IndexOp(source, (index,), dim=dim, values=values, accumulate=True)


EDGE_INDEX_OPS = {
    _edge.index.Tensor: _index,
    _edge.index_select.default: _index_select,
    _edge.embedding.default: _embedding,
    _edge.gather.default: _gather,
    _edge.index_put.default: _index_put,
    _edge.scatter.src: scatter,
    _edge.scatter.value: scatter,
    _edge.scatter_add.default: scatter_add,
}


def match(node: Node, ops: dict[Any, Any] = EDGE_INDEX_OPS) -> IndexOp | None:
    """Return the index op that ``node`` is, or None."""
    if node.op != "call_function" or node.target not in ops:
        return None
    return ops[node.target](*node.args, **node.kwargs)


def constant_indices(
    op: IndexOp, constants: ConstantEvaluator
) -> list[torch.Tensor | Node | None]:
    """Return the index tensors' values, or the nodes that have none.

    Raises:
        IndexRefused: An index comes from a buffer that the program writes.

    """

    def value(index: Node | None) -> torch.Tensor | Node | None:
        try:
            return None if index is None else constants.value(index)
        except MutableConstant as error:
            raise IndexRefused(f"the index is not constant: {error}") from error
        except NotConstant:
            return index

    return [value(index) for index in op.indices]


def places_of(
    op: IndexOp, values: Sequence[torch.Tensor | Node | None]
) -> Sequence[torch.Tensor | Node | None]:
    """Return one place for each leading dimension; the last is not None.

    Raises:
        IndexRefused: A value is out of range, or the form has no equivalent.

    """
    for dim, size in enumerate(op.shape):
        if not isinstance(size, int):
            # The lowering reshapes the source, which takes the shape extension.
            raise IndexRefused(f"dimension {dim} of the source has a symbolic size")
    if op.dim is not None:
        return _places_of_elements(op, op.dim, cast(torch.Tensor, values[0]))
    constants = [value for value in values if not isinstance(value, Node)]
    if len(constants) == len(values):
        values = expand_masks(constants)
    elif any(value is not None and _is_mask(value) for value in values):
        raise IndexRefused("there is a mask beside an index computed at run time")
    while values and values[-1] is None:
        values = values[:-1]
    return [
        normalize(value, op.shape[dim]) if isinstance(value, torch.Tensor) else value
        for dim, value in enumerate(values)
    ]


def _places_of_elements(
    op: IndexOp, dim: int, index: torch.Tensor
) -> list[torch.Tensor | None]:
    if index.dim() != len(op.shape) or index.dim() == 0:
        raise IndexRefused(
            f"the index has rank {index.dim()} and its source rank {len(op.shape)}"
        )
    return index_of_each_element(op.shape, dim, normalize(index, op.shape[dim]))


def every_leading_dim(
    op: IndexOp, places: Sequence[torch.Tensor | Node | None]
) -> Sequence[torch.Tensor | Node]:
    """Return places without None, as ``index_every_leading_dim`` does.

    Raises:
        IndexRefused: A dimension is skipped beside an index computed at run time.

    """
    given = [place for place in places if place is not None]
    if len(given) == len(places):
        return given
    constants = [place for place in places if not isinstance(place, Node)]
    if len(constants) < len(places):
        raise IndexRefused(
            "a dimension is skipped beside an index computed at run time"
        )
    return index_every_leading_dim(op.shape, constants)


def writes_no_place_twice(
    op: IndexOp, places: Sequence[torch.Tensor | Node | None]
) -> bool:
    """Whether constant places alone tell all that is written apart."""
    given = [place for place in places if place is not None]
    shape = torch.broadcast_shapes(*(tensor_of(place).shape for place in given))
    if not all(isinstance(size, int) for size in shape):
        return False
    constants = [place for place in given if isinstance(place, torch.Tensor)]
    return selects_no_place_twice(constants, shape)


def check_writes_no_place_twice(
    op: IndexOp, places: Sequence[torch.Tensor | Node | None]
) -> None:
    """Raise IndexRefused where a place is written twice, or may be."""
    if not writes_no_place_twice(op, places):
        raise IndexRefused(
            "the index selects a place more than once, or may do so; TOSA's SCATTER "
            "takes each place once"
        )


def values_to_cut(op: IndexOp) -> list[tuple[int, int]]:
    """Return (dim, size) where the values of a scatter are larger than its index."""
    if op.dim is None or not isinstance(op.values, Node):
        return []
    sizes = zip(tensor_of(op.index).shape, tensor_of(op.values).shape)
    return [(dim, size) for dim, (size, whole) in enumerate(sizes) if size != whole]


def tensor_of(place: Node | torch.Tensor) -> torch.Tensor:
    """Return the tensor itself, or the fake tensor of a node."""
    return place.meta["val"] if isinstance(place, Node) else place


def _is_mask(value: Node | torch.Tensor) -> bool:
    return tensor_of(value).dtype in (torch.bool, torch.uint8)
