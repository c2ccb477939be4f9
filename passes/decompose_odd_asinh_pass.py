# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Set, Type

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.backends.arm._passes.match_arg_ranks_pass import MatchArgRanksPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass

_aten = exir_ops.edge.aten

# From where on asinh(x) is log(2x) to the last digit, far below where x * x is infinite.
_LARGE = {torch.float16: 128.0, torch.bfloat16: 4096.0, torch.float32: 4096.0}
_LOG_2 = 0.6931471805599453


class DecomposeOddAsinhPass(ArmOpTargetedPass):
    """Decompose asinh of a float, for either sign and any size.

    ``DecomposeAsinhPass`` computes log(x + sqrt(x * x + 1)), in which a negative x and
    the root cancel (-inf for x = -5000 in fp32, x = -50 in fp16) and x * x overflows.
    The function is odd, so that the magnitude is enough.

    Input graph::

        x: float -> asinh -> y

    Output graph::

        a = abs(x)
        is_small = a <= 4096 (128 in fp16); b = where(is_small, a, 0)
        log(where(is_small, b + sqrt(b * b + 1), a)) -> l
        l + where(is_small, 0, log(2)) -> m
        where(x < 0, neg(m), m) -> y

    """

    _passes_required_after: Set[Type[ExportPass]] = {MatchArgRanksPass}
    target_ops = (_aten.asinh.default,)

    def call_operator(self, op, args, kwargs, meta, updated=False):
        if op not in self.target_ops or self._is_quantized_meta(meta):
            return super().call_operator(op, args, kwargs, meta, updated)

        def call(op, *args, **kwargs):
            return super(DecomposeOddAsinhPass, self).call_operator(
                op, args, kwargs, meta, updated=True
            )

        (x,) = args
        ones, dtype = (1,) * x.data.dim(), x.data.dtype

        def number(value):
            return call(_aten.full.default, ones, value, dtype=dtype)

        zero = number(0.0)
        size = call(_aten.abs.default, x)
        is_small = call(_aten.le.Tensor, size, number(_LARGE[dtype]))
        small = call(_aten.where.self, is_small, size, zero)
        square = call(_aten.mul.Tensor, small, small)
        root = call(_aten.sqrt.default, call(_aten.add.Tensor, square, number(1.0)))
        sum_ = call(_aten.add.Tensor, small, root)
        log = call(_aten.log.default, call(_aten.where.self, is_small, sum_, size))
        rest = call(_aten.where.self, is_small, zero, number(_LOG_2))
        positive = call(_aten.add.Tensor, log, rest)
        negative = call(_aten.neg.default, positive)
        is_negative = call(_aten.lt.Tensor, x, zero)
        return call(_aten.where.self, is_negative, negative, positive)
