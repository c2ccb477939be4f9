# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The values that an int64 input of a program may have without an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import Graph, Node

from .index_ops import IndexOp, match
from .index_sources import is_call
from .int32_forms import WHOLE_MOVES

_edge = exir_ops.edge.aten
_COUNT_FROM_THE_END = (_edge.index.Tensor, _edge.index_put.default)


def input_bounds(
    graph: Graph, is_user_input: Callable[[Node], bool]
) -> dict[Node, torch.Tensor]:
    """Return the smallest and the largest valid value of inputs, as ``int64[2]``.

    An input that the program reads as an index, whole and on every run, holds places
    in a dimension; eager PyTorch raises an error for any other value. Inputs of which
    that is not known are left out.

    """
    bounds = {}
    for node in graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dtype != torch.int64:
            continue
        if not is_user_input(node):
            continue
        ends = list(_bounds_by_use(node))
        if ends:
            low, high = max(lo for lo, _ in ends), min(hi for _, hi in ends)
            bounds[node] = torch.tensor([low, max(low, high)])
    return bounds


def _bounds_by_use(node: Node) -> Iterator[tuple[int, int]]:
    for user in node.users:
        if is_call(user, WHOLE_MOVES):
            yield from _bounds_by_use(user)
        elif (op := match(user)) is not None and node in op.indices:
            size = indexed_size(op, node)
            if isinstance(size, int) and size > 0:
                yield -size if is_counted_from_both_ends(user) else 0, size - 1


def indexed_size(op: IndexOp, index: Node) -> int | torch.SymInt:
    """Return the size of the dimension that one of the op's indices counts in."""
    dim = op.indices.index(index) if op.dim is None else op.dim
    return op.shape[dim] if op.shape else 1


def is_counted_from_both_ends(node: Node) -> bool:
    """Whether an index op takes a negative index for one from the end."""
    return node.target in _COUNT_FROM_THE_END
