# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The arithmetic of transposed convolutions, against torch and without a backend."""

import pytest
import torch
import torch.nn.functional as F
from arm_ext.passes.transposed_conv import (
    as_plain,
    block_diagonal,
    dilated,
    insertions,
    TransposedConv,
    ZeroInsertion,
)
from hypothesis import given, settings, strategies as st


@st.composite
def convolutions(draw):
    """A 1-D or 2-D transposed convolution with an output."""
    axes = draw(st.integers(1, 2))
    each = st.lists(st.integers(1, 4), min_size=axes, max_size=axes).map(tuple)
    conv = {"size": draw(each), "kernel": draw(each), "stride": draw(each)}
    conv["dilation"] = draw(each)
    conv["padding"] = tuple(draw(st.integers(0, 7)) for _ in range(axes))
    conv["output_padding"] = tuple(
        draw(st.integers(0, max(s, d) - 1))
        for s, d in zip(conv["stride"], conv["dilation"])
    )
    conv["groups"] = draw(st.sampled_from([1, 2, 4]))
    conv = TransposedConv(**conv)
    outputs = (
        (n - 1) * s - 2 * p + r + e + 1
        for n, s, p, r, e in zip(
            conv.size, conv.stride, conv.padding, conv.reach, conv.output_padding
        )
    )
    return conv if min(outputs) > 0 else draw(convolutions())


def tensors(conv):
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-9, 9, (2, 4, *conv.size), generator=generator).double()
    shape = (4, 8 // conv.groups, *conv.kernel)
    return x, torch.randint(-9, 9, shape, generator=generator).double()


def transposed(conv, x, weight):
    function = (F.conv_transpose1d, F.conv_transpose2d)[len(conv.kernel) - 1]
    return function(
        x,
        weight,
        None,
        conv.stride,
        conv.padding,
        conv.output_padding,
        conv.groups,
        conv.dilation,
    )


def zeros_inserted(conv, x, weight):
    """Follow the zero insertion to the letter, a negative end being a crop."""
    for axis, insertion in enumerate(insertions(conv), start=2):
        x = F.pad(
            x.unsqueeze(axis + 1),
            [0, 0] * (x.dim() - 1 - axis) + [insertion.lead, insertion.trail],
        ).flatten(axis, axis + 1)
        ends = [insertion.left, insertion.right]
        x = F.pad(x, [0, 0] * (x.dim() - 1 - axis) + ends)
    function = (F.conv1d, F.conv2d)[len(conv.kernel) - 1]
    plain = as_plain(weight, conv.groups)
    return function(x, plain, None, 1, 0, conv.dilation, conv.groups)


@settings(max_examples=150, deadline=None)
@given(convolutions())
def test_zero_insertion_is_the_transposed_convolution(conv):
    x, weight = tensors(conv)
    assert torch.equal(zeros_inserted(conv, x, weight), transposed(conv, x, weight))


@settings(max_examples=60, deadline=None)
@given(convolutions())
def test_dense_dilated_and_flat_forms_are_the_same(conv):
    x, weight = tensors(conv)
    wanted = transposed(conv, x, weight)
    # Eager wants output_padding below stride or dilation; TOSA's out_pad does not.
    if all(e < s for e, s in zip(conv.output_padding, conv.stride)):
        flat = conv.without_dilation()
        assert torch.equal(transposed(flat, x, dilated(weight, conv.dilation)), wanted)
    one = TransposedConv(**{**vars(conv), "groups": 1})
    assert torch.equal(transposed(one, x, block_diagonal(weight, conv.groups)), wanted)
    if len(conv.kernel) == 1:
        plane = conv.with_unit_axis()
        got = transposed(plane, x.unsqueeze(2), weight.unsqueeze(2))
        assert torch.equal(got.squeeze(2), wanted)


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_ends_are_as_equal_as_can_be(stride, reach, padding, extra):
    axis = ZeroInsertion.of(stride, reach, padding, extra)
    assert axis.lead + axis.trail == stride - 1 and min(axis.lead, axis.trail) >= 0
    if extra < stride:
        assert abs(axis.left - axis.right) <= 1


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "fits"),
    [
        ((5, 5), (3, 3), (1, 1), True),
        ((5, 5), (3, 3), (2, 2), True),
        ((1, 5), (1, 3), (1, 2), True),
        ((5, 1), (3, 1), (2, 1), True),
        ((5, 5), (3, 3), (1, 2), False),
        ((5, 5), (3, 3), (3, 3), False),
    ],
)
def test_what_ethos_u55_takes(size, kernel, stride, fits):
    zero, one = (0, 0), (1, 1)
    conv = TransposedConv(size, kernel, stride, zero, one, zero, 1)
    assert conv.fits_u55(int16=False) is fits
    assert not conv.fits_u55(int16=True)


def test_padding_beyond_the_kernel():
    conv = TransposedConv((5,), (3,), (1,), (4,), (2,), (0,), 1)
    assert conv.reach == (4,) and not conv.crops_whole_kernel
    assert TransposedConv((5,), (3,), (1,), (3,), (1,), (0,), 1).crops_whole_kernel
