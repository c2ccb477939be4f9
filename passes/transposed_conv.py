# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What a transposed convolution is, and the plain form TOSA can take.

Shared by the support check, which asks whether a node can be rewritten, and by
the pass that rewrites it. Pure functions of shapes, strides and weights.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from executorch.backends.arm._passes.arm_pass_utils import (
    expand_around_channel,
    get_first_fake_tensor,
)
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import Node

CONVOLUTION = exir_ops.edge.aten.convolution.default


@dataclass(frozen=True)
class TransposedConv:
    """The parameters of a transposed convolution, one entry a spatial axis.

    An input of ``[N, C_in, L]`` or ``[N, C_in, H, W]`` becomes ``[N, C_out, ...]``
    with ``L_out = (L - 1) * stride - 2 * padding + dilation * (kernel - 1) +
    output_padding + 1``; the weight is ``[C_in, C_out / groups, ...]``.

    """

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    output_padding: tuple[int, ...]
    groups: int

    @classmethod
    def of(cls, node: Node) -> TransposedConv | None:
        """Return that of an edge node; None for anything else."""
        if node.op != "call_function" or node.target != CONVOLUTION:
            return None
        x, weight, _, stride, padding, dilation, transposed, extra, groups = cast(
            tuple[Any, ...], node.args
        )
        if not transposed:
            return None
        size = tuple(get_first_fake_tensor(x).shape[2:])
        kernel = tuple(get_first_fake_tensor(weight).shape[2:])

        def each(values: Any) -> tuple[int, ...]:
            return tuple(expand_around_channel(values, len(kernel)))

        return cls(
            size,
            kernel,
            each(stride),
            each(padding),
            each(dilation),
            each(extra),
            groups,
        )

    @property
    def reach(self) -> tuple[int, ...]:
        """How far the dilated kernel extends beyond its first tap."""
        return tuple(d * (k - 1) for d, k in zip(self.dilation, self.kernel))

    @property
    def crops_whole_kernel(self) -> bool:
        """Whether padding takes away more than the kernel adds on a side.

        ``out_pad`` of TOSA TRANSPOSE_CONV2D must be above minus the kernel.

        """
        return any(p > r for p, r in zip(self.padding, self.reach))

    def with_unit_axis(self) -> TransposedConv:
        """Return the same as a 2-D one over ``[N, C, 1, L]``."""
        return replace(
            self,
            size=(1, *self.size),
            kernel=(1, *self.kernel),
            stride=(1, *self.stride),
            padding=(0, *self.padding),
            dilation=(1, *self.dilation),
            output_padding=(0, *self.output_padding),
        )

    def without_dilation(self) -> TransposedConv:
        """Return the same with the kernel of :func:`dilated`."""
        kernel = tuple(reach + 1 for reach in self.reach)
        return replace(self, kernel=kernel, dilation=(1,) * len(kernel))

    def fits_u55(self, int16: bool) -> bool:
        """Return whether Vela takes it as TRANSPOSE_CONV2D on Ethos-U55.

        https://gitlab.arm.com/artificial-intelligence/ethos-u/ethos-u-vela, file
        SUPPORTED_OPS.md: int8, strides 1x1 or 2x2, and 1x2 or 2x1 along a unit
        axis.

        """
        if int16:
            return False
        unit = [s == 1 and k == 1 for s, k in zip(self.size, self.kernel)]
        return (
            set(self.stride) in ({1}, {2})
            or (self.stride == (1, 2) and unit[0])
            or (self.stride == (2, 1) and unit[1])
        )


@dataclass(frozen=True)
class ZeroInsertion:
    """One axis of a transposed convolution as a plain one of stride 1.

    Between the samples of the input come ``stride - 1`` zeros, ``lead`` of them in
    front of each sample and ``trail`` behind it; then ``left`` and ``right`` more
    at the ends. A negative number crops.

    """

    lead: int
    trail: int
    left: int
    right: int

    @classmethod
    def of(
        cls, stride: int, reach: int, padding: int, output_padding: int
    ) -> ZeroInsertion:
        """Return that with ends as equal as can be: a convolution pads alike."""
        uneven = stride - 1 - output_padding
        lead = max(uneven // 2, 0)
        left = reach - padding - lead
        return cls(lead, stride - 1 - lead, left, left + 2 * lead - uneven)


def insertions(conv: TransposedConv) -> list[ZeroInsertion]:
    """Return the :class:`ZeroInsertion` of every axis."""
    axes = zip(conv.stride, conv.reach, conv.padding, conv.output_padding)
    return [ZeroInsertion.of(*axis) for axis in axes]


def dilated(weight: torch.Tensor, dilation: Sequence[int]) -> torch.Tensor:
    """Return the kernel with ``dilation - 1`` zeros between its taps."""
    if set(dilation) == {1}:
        return weight
    kernel = weight.shape[2:]
    sizes = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    result = weight.new_zeros(*weight.shape[:2], *sizes)
    taps = (slice(None, None, d) for d in dilation)
    result[(slice(None), slice(None), *taps)] = weight
    return result


def block_diagonal(weight: torch.Tensor, groups: int) -> torch.Tensor:
    """Return the weight of one group that computes what ``groups`` groups do.

    ``[C_in, C_out / groups, ...]`` becomes ``[C_in, C_out, ...]``, zero where an
    input channel does not reach an output channel.

    """
    c_in, per_group, *kernel = weight.shape
    result = weight.new_zeros(groups, c_in // groups, groups, per_group, *kernel)
    every = torch.arange(groups)
    result[every, :, every] = weight.reshape(groups, c_in // groups, per_group, *kernel)
    return result.reshape(c_in, groups * per_group, *kernel)


def as_plain(weight: torch.Tensor, groups: int) -> torch.Tensor:
    """Return the weight of the plain convolution behind the zero insertion.

    ``[C_in, C_out / groups, ...]`` becomes ``[C_out, C_in / groups, ...]`` with
    each kernel reversed.

    """
    c_in, per_group, *kernel = weight.shape
    grouped = weight.reshape(groups, c_in // groups, per_group, *kernel)
    plain = grouped.transpose(1, 2).reshape(-1, c_in // groups, *kernel)
    return plain.flip(tuple(range(2, plain.dim()))).contiguous()
