# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Set, Type

from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.backends.arm._passes.decompose_sum_pass import DecomposeSumPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass

_aten = exir_ops.edge.aten


class DecomposeLogSoftmaxPass(ArmOpTargetedPass):
    """Decompose log_softmax of a float without a logarithm of what underflows.

    ``DecomposeSoftmaxPass`` takes the logarithm of the softmax, which is 0 for what is
    104 below the largest (fp32; 17 in fp16), so that -inf comes out.

    Input graph::

        x: float -> _log_softmax(dim) -> y

    Output graph::

        shifted = x - amax(x, dim)
        shifted - log(sum(exp(shifted), dim)) -> y

    """

    _passes_required_after: Set[Type[ExportPass]] = {DecomposeSumPass}
    target_ops = (_aten._log_softmax.default,)

    def call_operator(self, op, args, kwargs, meta, updated=False):
        if op not in self.target_ops or self._is_quantized_meta(meta):
            return super().call_operator(op, args, kwargs, meta, updated)

        def call(op, *args):
            return super(DecomposeLogSoftmaxPass, self).call_operator(
                op, args, {}, meta, updated=True
            )

        x, dim = args[:2]
        largest = call(_aten.amax.default, x, [dim], True)
        shifted = call(_aten.sub.Tensor, x, largest)
        exps = call(_aten.exp.default, shifted)
        log = call(_aten.log.default, call(_aten.sum.dim_IntList, exps, [dim], True))
        return call(_aten.sub.Tensor, shifted, log)
