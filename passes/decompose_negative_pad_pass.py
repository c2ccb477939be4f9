# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from collections.abc import Sequence
from typing import Set, Type

from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.backends.arm._passes.rewrite_pad import RewritePadPass
from executorch.backends.arm._passes.rewrite_slice import RewriteSlicePass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass


class DecomposeNegativePadPass(ArmOpTargetedPass):
    """Crop with SLICE where a constant pad has negative sizes.

    PyTorch reads a negative pad as a crop; TOSA PAD takes none.

    Input graph::

        x [2, 8] -> pad(x, [-1, 2], value=v) -> [2, 9]

    Output graph::

        x [2, 8] -> slice_copy(x, dim=1, start=1, end=8) -> [2, 7]
                 -> constant_pad_nd([0, 2], v) -> [2, 9]

    Data movement only, so quantization parameters stay as they are. The pad is
    left out where nothing is added.

    """

    _passes_required_after: Set[Type[ExportPass]] = {RewritePadPass, RewriteSlicePass}
    target_ops = {
        exir_ops.edge.aten.constant_pad_nd.default,
        exir_ops.edge.aten.pad.default,
    }

    def call_operator(self, op, args, kwargs, meta, updated=False):
        if op not in self.target_ops or not _is_crop(op, args, kwargs):
            return super().call_operator(op, args, kwargs, meta, updated)
        cropped, pads = args[0], args[1]
        rank = len(cropped.data.shape)
        for pair, (before, after) in enumerate(zip(pads[::2], pads[1::2])):
            if before >= 0 and after >= 0:
                continue
            dim = rank - 1 - pair
            start = max(-before, 0)
            end = cropped.data.shape[dim] - max(-after, 0)
            cropped = super().call_operator(
                exir_ops.edge.aten.slice_copy.Tensor,
                (cropped, dim, start, end),
                {},
                meta,
                True,
            )
        added = [max(size, 0) for size in pads]
        if not any(added):
            return cropped
        return super().call_operator(
            exir_ops.edge.aten.constant_pad_nd.default,
            (cropped, added, _value(op, args, kwargs)),
            {},
            meta,
            True,
        )


def _is_crop(op, args: Sequence, kwargs: dict) -> bool:
    if op == exir_ops.edge.aten.pad.default:
        mode = args[2] if len(args) > 2 else kwargs.get("mode", "constant")
        if mode != "constant":
            return False
    return any(isinstance(size, int) and size < 0 for size in args[1])


def _value(op, args: Sequence, kwargs: dict):
    position = 3 if op == exir_ops.edge.aten.pad.default else 2
    value = args[position] if len(args) > position else kwargs.get("value", 0)
    return 0 if value is None else value
