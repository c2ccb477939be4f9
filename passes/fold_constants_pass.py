# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import torch
from executorch.backends.arm.constants import DQ_OPS, Q_OPS
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from .before_partition_pass import BeforePartitionPass
from .module_constants import ModuleConstants
from .program_constants import ProgramConstants


class FoldConstantsPass(BeforePartitionPass):
    """Fold what depends on constants only and would stay on the CPU.

    The backend folds constants inside a delegate. What it does not take, a
    ``pow.Scalar``, float64 or int64, never gets there and is computed on the CPU
    every time. Here it is computed once, in its own dtype.

    Input graph::

        arange(8, dtype=float64) -> div(8) -> pow(10000, .) -> cast(float32) -> mul(x)

    Output graph::

        constant float32[8] -> mul(x)

    A constant is folded only for a user that the partitioner takes with it, and a
    float64 for one that stays on the CPU, as float64 does. One that is quantized is
    folded in front of its quantize. An int64 beyond int32 stays: the
    backend casts an int64 constant without a look at its values.

    Edge dialect, top-level graph, before partitioning; or ATen, before annotation.

    """

    _constants: ProgramConstants | ModuleConstants

    def call(self, graph_module: GraphModule) -> PassResult:
        self._foldable: set[Node] = set()
        self._left: set[Node] = set()
        for node in graph_module.graph.nodes:
            self._classify(node)
        left = [node for node in graph_module.graph.nodes if node in self._left]
        folded = [self._fold(node) for node in left]
        modified = any(folded)
        if modified:
            self._constants.remove_dead(reversed(left))
            graph_module.recompile()
        self._constants.remove_unused()
        return PassResult(graph_module, modified)

    # Check.

    def _classify(self, node: Node) -> None:
        """Note whether a node can be folded, and whether the CPU has a part in it."""
        sources = [n for n in node.all_input_nodes if n.op == "call_function"]
        if (
            node.op != "call_function"
            or node.target in (*Q_OPS, *DQ_OPS)
            or not self._foldable.issuperset(sources)
            or not self._constants.is_constant(node)
        ):
            return
        self._foldable.add(node)
        if not self._left.isdisjoint(sources) or self._why_not(node) is not None:
            self._left.add(node)

    # Rewrite: where a user is not taken with the constant either, put back.

    def _fold(self, node: Node) -> bool:
        users = [
            user
            for user in node.users
            if user.op == "call_function" and user not in self._foldable
        ]
        if not users:
            return False
        # The evaluator skips a narrowing cast.
        value = self._constants.value(node).to(node.meta["val"].dtype)
        if not _is_kept_by_int32(value):
            return False
        constant = self._constants.add(value)
        given = [self._give(user, node, constant) for user in users]
        return any(given)

    def _give(self, user: Node, node: Node, constant: Node) -> bool:
        user.replace_input_with(node, constant)
        if constant.meta["val"].dtype == torch.float64 or self._why_not(user) is None:
            return True
        user.replace_input_with(constant, node)
        return False


def _is_kept_by_int32(value: torch.Tensor) -> bool:
    """Whether a constant is no int64, or loses nothing as the int32 it becomes."""
    return value.dtype != torch.int64 or torch.equal(
        value.to(torch.int32).to(torch.int64), value
    )
