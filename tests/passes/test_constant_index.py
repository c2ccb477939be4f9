# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A constant index in the form that the backend lowers, against eager indexing."""

import pytest
import torch
from arm_ext.passes.constant_index import (
    expand_masks,
    index_every_leading_dim,
    index_of_each_element,
    IndexRefused,
    normalize,
    selects_no_place_twice,
)
from hypothesis import given, settings, strategies as st


@st.composite
def indexed_tensors(draw):
    """A source of rank 1 to 5 and an index with None, broadcasting and negatives."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    count = draw(st.integers(1, len(shape)))
    broadcast = draw(st.lists(st.integers(1, 3), max_size=2))
    seed = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    indices = []
    for size in shape[:count]:
        if draw(st.booleans()):
            indices.append(None)
            continue
        dropped = draw(st.integers(0, len(broadcast)))
        own = [draw(st.sampled_from((1, size_))) for size_ in broadcast[dropped:]]
        indices.append(torch.randint(-size, size, own, generator=seed))
    if indices[-1] is None:
        indices[-1] = torch.randint(0, shape[count - 1], broadcast, generator=seed)
    source = torch.arange(torch.tensor(shape).prod().item()).reshape(shape)
    return source, indices


@settings(max_examples=300, deadline=None)
@given(indexed_tensors())
def test_index_every_leading_dim_selects_what_eager_selects(case):
    source, indices = case
    expected = torch.ops.aten.index.Tensor(source, indices)
    places = [
        None if index is None else normalize(index, size)
        for index, size in zip(indices, source.shape)
    ]
    tensors = index_every_leading_dim(source.shape, places)
    actual = torch.ops.aten.index.Tensor(source, tensors)
    assert actual.shape == expected.shape and torch.equal(actual, expected)


@st.composite
def gathered_tensors(draw):
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    dim = draw(st.integers(0, len(shape) - 1))
    index_shape = [draw(st.integers(1, size)) for size in shape]
    index_shape[dim] = draw(st.integers(1, 4))
    seed = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    repeated = [
        1 if draw(st.booleans()) and d != dim else size
        for d, size in enumerate(index_shape)
    ]
    index = torch.randint(0, shape[dim], repeated, generator=seed).expand(index_shape)
    source = torch.arange(torch.tensor(shape).prod().item()).reshape(shape)
    return source, dim, index


@settings(max_examples=300, deadline=None)
@given(gathered_tensors())
def test_index_of_each_element_selects_what_gather_selects(case):
    source, dim, index = case
    places = index_of_each_element(source.shape, dim, index)
    tensors = index_every_leading_dim(source.shape, places)
    actual = torch.ops.aten.index.Tensor(source, tensors)
    assert torch.equal(actual, source.gather(dim, index))


def test_whole_rows_move_where_the_index_repeats():
    index = torch.tensor([2, 0]).reshape(1, 2, 1).expand(4, 2, 8)
    places = index_of_each_element((4, 3, 8), 1, index)
    assert places[0] is None and places[1].tolist() == [2, 0] and len(places) == 2


@pytest.mark.parametrize("values", [[-4], [3], [2**31], [0, -(2**40)]])
def test_out_of_range_is_refused(values):
    with pytest.raises(IndexRefused, match=f"{values[-1]}, out of range"):
        normalize(torch.tensor(values), 3)


def test_beyond_int32_is_refused_even_in_range():
    with pytest.raises(IndexRefused, match="does not fit int32"):
        normalize(torch.tensor([2**31]), 2**32)


def test_empty_is_refused():
    with pytest.raises(IndexRefused, match="empty"):
        normalize(torch.zeros(0, dtype=torch.int64), 3)


def test_ends_of_the_range_are_kept():
    assert normalize(torch.tensor([-3, 2, 0, -1]), 3).tolist() == [0, 2, 0, 2]


def test_masks_become_index_tensors():
    mask = torch.tensor([[True, False], [True, True]])
    source = torch.arange(12).reshape(2, 2, 3)
    expanded = expand_masks([mask])
    assert torch.equal(source[tuple(expanded)], source[mask])


@pytest.mark.parametrize(
    ("indices", "shape", "expected"),
    [
        ([[0, 1, 2]], (3,), True),
        ([[0, 1, 0]], (3,), False),
        ([[0, 0], [0, 1]], (2,), True),
        ([[1]], (2,), False),
        ([], (2,), False),
    ],
)
def test_selects_no_place_twice(indices, shape, expected):
    tensors = [torch.tensor(index) for index in indices]
    assert selects_no_place_twice(tensors, shape) is expected
