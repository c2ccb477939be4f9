# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import math
from typing import Any

import torch
from executorch.backends.arm._passes import (
    ArmOpTargetedPass,
    ConvertExpandCopyToRepeatPass,
    FuseViewCopyTransformPass,
    RewriteIndexPutPass,
)
from executorch.backends.arm._passes.arm_pass_utils import meta_without_qparams
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass, NodeMetadata, ProxyValue

_edge = exir_ops.edge.aten


class FlattenIndexPutIndicesPass(ArmOpTargetedPass):
    """Give ``index_put`` rank-1 index tensors.

    ``RewriteIndexPutPass`` counts the places to write by the first dimension of
    the index tensors. Where they broadcast to a shape ``S`` of another rank, this
    pass flattens it to ``W = prod(S)``::

        index_put(x: [*K, *C], [i: broadcastable to S, ...], v)

    becomes::

        i_flat = view(expand(i, S), [W]), ...
        v_flat = view(expand(v, [*S, *C]), [W, *C])
        index_put(x, [i_flat, ...], v_flat)

    Masks, and indices that skip a dimension, are left to the passes for them.

    """

    _passes_required_after: set[type[ExportPass]] = {
        ConvertExpandCopyToRepeatPass,
        FuseViewCopyTransformPass,
        RewriteIndexPutPass,
    }
    target_ops = (_edge.index_put.default,)

    def call_operator(
        self,
        op: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        meta: NodeMetadata,
        updated: bool | None = False,
    ) -> ProxyValue:
        if op not in self.target_ops or not _has_indices_to_flatten(args[1]):
            return super().call_operator(op, args, kwargs, meta, updated)
        source, indices, values, *accumulate = args
        shape = list(torch.broadcast_shapes(*(index.data.shape for index in indices)))
        rows = list(source.data.shape[len(indices) :])
        count = math.prod(shape)
        plain = meta_without_qparams(meta)
        flat = [self._flatten(index, shape, [count], plain) for index in indices]
        values = self._flatten(values, shape + rows, [count] + rows, meta)
        return super().call_operator(
            op, (source, flat, values, *accumulate), kwargs, meta, True
        )

    def _flatten(
        self,
        tensor: ProxyValue,
        shape: list[int],
        flat: list[int],
        meta: NodeMetadata,
    ) -> ProxyValue:
        if len(shape) > tensor.data.dim():
            # Expanding must not change the rank.
            rank = [1] * (len(shape) - tensor.data.dim()) + list(tensor.data.shape)
            tensor = self._call(_edge.view_copy.default, (tensor, rank), meta)
        if list(tensor.data.shape) != shape:
            tensor = self._call(_edge.expand_copy.default, (tensor, shape), meta)
        return self._call(_edge.view_copy.default, (tensor, flat), meta)

    def _call(self, op: Any, args: tuple[Any, ...], meta: NodeMetadata) -> ProxyValue:
        return super().call_operator(op, args, {}, meta, True)


def _has_indices_to_flatten(indices: Any) -> bool:
    if any(index is None or index.data.dtype == torch.bool for index in indices):
        return False
    return any(index.data.dim() != 1 for index in indices)
