# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from typing import Any

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass

_edge = exir_ops.edge.aten


class DecomposeIntCumsumPass(ArmOpTargetedPass):
    """Compute a cumsum of int32 by additions, for TOSA has no convolution of int32.

    Each round adds the tensor to itself, shifted by twice as many places as before::

        x: [1, 1, 1, 1, 1] -> x + [0, 1, 1, 1, 1] = [1, 2, 2, 2, 2]
                           -> x + [0, 0, 1, 2, 2] = [1, 2, 3, 4, 4]
                           -> x + [0, 0, 0, 0, 1] = [1, 2, 3, 4, 5]

    So ``log2(size)`` rounds do. What is added on the way is the sum of elements
    that follow one another. Quantized cumsums are left to ``DecomposeCumsumPass``.

    """

    _passes_required_after: set[type[ExportPass]] = set()
    target_ops = (_edge.cumsum.default,)

    def call_operator(
        self,
        op: Any,
        args: tuple,
        kwargs: dict,
        meta: Any,
        updated: bool | None = False,
    ) -> Any:
        x = args[0]
        if (
            op not in self.target_ops
            or x.data.dtype != torch.int32
            or self._is_quantized_meta(meta)
        ):
            return super().call_operator(op, args, kwargs, meta, updated)
        if x.data.dim() == 0:
            return x
        dim = args[1] % x.data.dim()
        size, places = x.data.shape[dim], 1
        while places < size:
            x = self._add_shifted(x, dim, places, meta)
            places *= 2
        return x

    def _add_shifted(self, x: Any, dim: int, places: int, meta: Any) -> Any:
        size, behind = x.data.shape[dim], x.data.dim() - 1 - dim

        def call(op: Any, *args: Any) -> Any:
            return super(DecomposeIntCumsumPass, self).call_operator(
                op, args, {}, meta, updated=True
            )

        kept = call(_edge.slice_copy.Tensor, x, dim, 0, size - places)
        padding = [0, 0] * behind + [places, 0]
        shifted = call(_edge.constant_pad_nd.default, kept, padding, 0)
        return call(_edge.add.Tensor, x, shifted)
