# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What a constant index selects, worked out with plain tensors.

PyTorch's index ops take integers, masks, ``None`` and broadcast them by rules
of their own. The functions here turn any of these forms into one: one integer
tensor for each leading dimension of the source, all broadcastable to one shape,
every value in ``[0, size)``. They know tensors and sizes only, no graph.

"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

INT32_MAX = torch.iinfo(torch.int32).max


class IndexRefused(Exception):
    """An index that must not be narrowed to int32; the message says why."""


def expand_masks(
    indices: Sequence[torch.Tensor | None],
) -> list[torch.Tensor | None]:
    """Replace each boolean mask of rank k by the k index tensors it stands for."""
    expanded: list[torch.Tensor | None] = []
    for index in indices:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            expanded.extend(index.nonzero().unbind(1))
        else:
            expanded.append(index)
    return expanded


def normalize(index: torch.Tensor, size: int) -> torch.Tensor:
    """Return ``index`` as int64 with every value in ``[0, size)``.

    Args:
        index (torch.Tensor): Integer tensor of any shape.
        size (int): Size of the indexed dimension.

    Raises:
        IndexRefused: The index is empty, or a value is out of range or does not
            fit int32.

    """
    index = index.to(torch.int64)
    if index.numel() == 0:
        raise IndexRefused("the index is empty, and TOSA has no empty tensors")
    low, high = int(index.min()), int(index.max())
    if low < -size or high >= size:
        value = low if low < -size else high
        raise IndexRefused(
            f"the index holds {value}, out of range for a dimension of size {size}"
        )
    if high > INT32_MAX:
        raise IndexRefused(f"the index holds {high}, which does not fit int32")
    return torch.where(index < 0, index + size, index)


def index_every_leading_dim(
    shape: Sequence[int], indices: Sequence[torch.Tensor | None]
) -> list[torch.Tensor]:
    """Replace each ``None`` by a range, so that no leading dimension is skipped.

    ``x[:, i]`` of an ``[N, K]`` source is ``x[n, i]`` with ``n`` of shape
    ``[N, 1]``. The ranges stand where PyTorch puts the dimension: in place when
    the index tensors are side by side, after the broadcast dimensions when a
    ``None`` lies between two of them.

    Args:
        shape (Sequence[int]): Shape of the source.
        indices (Sequence[torch.Tensor | None]): One entry a leading dimension;
            the last is a tensor.

    """
    tensors = [index for index in indices if index is not None]
    skipped = [dim for dim, index in enumerate(indices) if index is None]
    if not skipped:
        return tensors
    rank = max(tensor.dim() for tensor in tensors)
    in_front = skipped == list(range(len(skipped)))

    def place(dim: int, index: torch.Tensor | None) -> torch.Tensor:
        ranges = [1] * len(skipped)
        if index is None:
            ranges[skipped.index(dim)] = shape[dim]
            broadcast = [1] * rank
            index = torch.arange(shape[dim])
        else:
            broadcast = [1] * (rank - index.dim()) + list(index.shape)
        return index.reshape(ranges + broadcast if in_front else broadcast + ranges)

    return [place(dim, index) for dim, index in enumerate(indices)]


def index_of_each_element(
    shape: Sequence[int], dim: int, index: torch.Tensor
) -> list[torch.Tensor | None]:
    """Write the index of ``gather`` and ``scatter`` in the form of ``x[...]``.

    ``x.gather(1, i)`` of a rank-2 source is ``x[n, i]`` with ``n`` of shape
    ``[i.shape[0], 1]``. Trailing dimensions along which the index repeats are
    left out: whole rows move then, not single elements. So are all others when
    the index is the same everywhere: ``[None, i]`` with ``i`` of rank 1.

    Args:
        shape (Sequence[int]): Shape of the source.
        dim (int): The indexed dimension, not negative.
        index (torch.Tensor): Of the source's rank.

    """

    def repeats(d: int) -> bool:
        return index.shape[d] == shape[d] and bool(
            (index == index.narrow(d, 0, 1)).all()
        )

    while index.dim() - 1 > dim and repeats(index.dim() - 1):
        index = index.select(-1, 0)
    if index.dim() - 1 == dim and all(repeats(d) for d in range(dim)):
        return [None] * dim + [index.reshape(-1, index.shape[dim])[0]]

    def along(d: int) -> torch.Tensor:
        if d == dim:
            return index
        view = [1] * index.dim()
        view[d] = index.shape[d]
        return torch.arange(index.shape[d]).reshape(view)

    return [along(d) for d in range(index.dim())]


def selects_no_place_twice(
    indices: Sequence[torch.Tensor], shape: Sequence[int]
) -> bool:
    """Whether index tensors, broadcast to ``shape``, are never equal together.

    Args:
        indices (Sequence[torch.Tensor]): Values not negative. May be some of the
            index tensors only: what these tell apart, all of them do.
        shape (Sequence[int]): The shape that all index tensors broadcast to.

    """
    if not indices:
        return math.prod(shape) <= 1
    places = torch.stack([index.expand(shape).reshape(-1) for index in indices])
    return places.unique(dim=1).shape[1] == places.shape[1]
