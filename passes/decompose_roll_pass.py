# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from typing import Set, Type

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.exir.pass_base import ExportPass

_aten = torch.ops.aten


def rotations(
    shape: torch.Size, shifts: list[int] | int, dims: list[int] | int
) -> list[tuple[int, int]] | None:
    """Return (dimension, how far to rotate it) for each dimension of a roll.

    None where a size is not known when the program is lowered.

    """
    shifts = [shifts] if isinstance(shifts, int) else shifts
    dims = [dims] if isinstance(dims, int) else dims
    pairs = [(dim % max(len(shape), 1), shift) for dim, shift in zip(dims, shifts)]
    if not all(isinstance(value, int) for value in (*shifts, *shape)):
        return None
    return [
        (dim, shift % shape[dim])
        for dim, shift in pairs
        if shape and shape[dim] and shift % shape[dim]
    ]


class DecomposeRollPass(ArmOpTargetedPass):
    """Decompose roll into slices, before the quantizer sees it.

    Input graph::

        x [N, W] -> roll(shift, 1) -> y

    Output graph, with ``s = shift % W``::

        x -> slice(1, W - s, W) -> a
        x -> slice(1, 0, W - s) -> b
        cat([a, b], 1) -> y

    Slices and ``cat`` share their qparams, so it stays a move of data. Without
    dimensions the tensor is flattened first. A size that is not known leaves the op.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()
    target_ops = (_aten.roll.default,)

    def call_operator(self, op, args, kwargs, meta, updated=False):
        if op not in self.target_ops:
            return super().call_operator(op, args, kwargs, meta, updated)

        def call(op, *args):
            return super(DecomposeRollPass, self).call_operator(
                op, args, {}, meta, updated=True
            )

        x, shifts, *dims = args
        shape, dims = x.data.shape, dims[0] if dims else []
        flat = not dims and len(shape) != 1
        over = torch.Size([shape.numel()]) if flat else shape
        turns = rotations(over, shifts, dims or 0)
        if turns is None:
            return super().call_operator(op, args, kwargs, meta, updated)
        y = call(_aten.reshape.default, x, [-1]) if flat and turns else x
        for dim, turn in turns:
            size = over[dim]
            back = call(_aten.slice.Tensor, y, dim, size - turn, size)
            front = call(_aten.slice.Tensor, y, dim, 0, size - turn)
            y = call(_aten.cat.default, [back, front], dim)
        return call(_aten.reshape.default, y, list(shape)) if flat and turns else y
