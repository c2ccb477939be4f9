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


class DecomposeWhereNumberPass(ArmOpTargetedPass):
    """Make the number of a where a tensor, before the quantizer sees it.

    Input graph::

        x -> where(condition, x, -3.4e38) -> y

    Output graph::

        full_like(x, -3.4e38) -> n
        where(condition, x, n) -> y

    So the number is quantized with the tensor, and what stands for minus infinity in
    a mask is limited as in other masks. A where of two numbers, and one whose number
    promotes the tensor's dtype, stay.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()
    target_ops = (_aten.where.ScalarOther, _aten.where.ScalarSelf)
    check_allowed_to_transform = True

    def call_operator(self, op, args, kwargs, meta, updated=False):
        if op not in self.target_ops or not self.allowed_to_transform(meta):
            return super().call_operator(op, args, kwargs, meta, updated)
        condition, *values = args
        place = 1 if op == _aten.where.ScalarOther else 0
        tensor, number = values[1 - place], values[place]
        dtype = tensor.data.dtype
        if torch.result_type(tensor.data, number) != dtype:
            return super().call_operator(op, args, kwargs, meta, updated)
        values[place] = super().call_operator(
            _aten.full_like.default, (tensor, number), {}, meta, updated=True
        )
        return super().call_operator(
            _aten.where.self, (condition, *values), {}, meta, updated=True
        )
