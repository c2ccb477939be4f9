# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from executorch.backends.arm._passes import ArmPass
from executorch.backends.arm.constants import DQ_OPS
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

_aten = exir_ops.edge.aten

_TESTS = (_aten.isnan.default, _aten.isinf.default)


class NormalizeIsNanIsInfFmodPass(ArmPass):
    """Write fmod, isnan and isinf in the form that has a lowering.

    Input graphs::

        (x, y constant, all elements equal) -> fmod.Tensor -> z
        q int8 -> dequantize -> isnan -> y        (or isinf; or of an integer)

    Output graphs::

        x -> fmod.Scalar(y) -> z
        full(False) -> y

    A dequantized value is finite. One that the quantizer did not see, as an input of
    the program, is tested as the float that it is.

    Edge dialect, before partitioning, where constants have their values.

    Args:
        constant (Callable[[Node], torch.Tensor | None]): Returns the value of a node
            that depends on constants only, and None for another.

    """

    _passes_required_after: set[type[ExportPass]] = set()

    def __init__(
        self,
        constant: Callable[[Node], torch.Tensor | None],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._constant = constant

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for node in list(graph_module.graph.nodes):
            if is_fmod_by_tensor(node):
                modified |= self._divide_by_scalar(node)
            elif is_test_of_finite(node):
                _make_false(node)
                modified = True
        if modified:
            graph_module.graph.eliminate_dead_code()
            graph_module.recompile()
        return PassResult(graph_module, modified)

    def _divide_by_scalar(self, node: Node) -> bool:
        x, y = cast(tuple[Node, Node], node.args)
        divisor = self._constant(y)
        result = node.meta["val"]
        if (
            divisor is None
            or divisor.numel() == 0
            or bool((divisor != divisor.flatten()[0]).any())
            or x.meta["val"].shape != result.shape
            or x.meta["val"].dtype != result.dtype
        ):
            return False
        node.target = _aten.fmod.Scalar
        node.args = (x, divisor.flatten()[0].item())
        return True


def is_fmod_by_tensor(node: Node) -> bool:
    return node.op == "call_function" and node.target == _aten.fmod.Tensor


def is_test_of_finite(node: Node) -> bool:
    """Whether a node asks of a value without NaN and infinities whether it is one.

    What is an output of the program is left alone: no delegate is made of a constant.

    """
    if node.op != "call_function" or node.target not in _TESTS:
        return False
    (x,) = node.all_input_nodes
    shape = node.meta["val"].shape
    if not all(isinstance(size, int) for size in shape):
        return False
    if any(user.op == "output" for user in node.users):
        return False
    return x.target in DQ_OPS or not x.meta["val"].dtype.is_floating_point


def _make_false(node: Node) -> None:
    node.target = _aten.full.default
    node.args = (list(node.meta["val"].shape), False)
    node.kwargs = {"dtype": torch.bool}
