# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Set, Type

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass, InsertRescaleInt32Pass
from executorch.backends.arm._passes.arm_pass_utils import create_node
from executorch.backends.arm._passes.quant_args import QuantArgs
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass, PassResult


class RescaleNegatePass(ArmOpTargetedPass):
    """Rescale what is negated, where that changes its scale.

    TOSA's NEGATE has two zero points and no scale. The quantizer gives neg the qparams
    of its input; another op that reads the input too, such as cat, may give the input
    others afterwards.

    Input graph::

        x: qparams (s, z) -> neg -> y: qparams (t, u)

    Output graph::

        x -> RESCALE(s / t, z, v) -> neg: qparams (t, v) to (t, u) -> y

    where v is -1 - u in int8, so that what comes out covers all of y's range, and 0
    in int16.

    """

    _passes_required_after: Set[Type[ExportPass]] = {InsertRescaleInt32Pass}
    target_ops = (exir_ops.edge.aten.neg.default,)

    def call(self, graph_module: torch.fx.GraphModule) -> PassResult:
        modified = False
        for node in graph_module.graph.find_nodes(
            op="call_function", target=self.target_ops[0]
        ):
            sources = node.meta.get("input_qparams")
            results = node.meta.get("output_qparams")
            if sources and results and self._scales_differ(sources[0], results[0]):
                self._rescale(graph_module.graph, node, sources[0], results[0])
                modified = True
        if modified:
            graph_module = super().call(graph_module).graph_module
        return PassResult(graph_module, modified)

    @staticmethod
    def _scales_differ(source: QuantArgs, result: QuantArgs) -> bool:
        return source.get_scale_per_tensor() != result.get_scale_per_tensor()

    @staticmethod
    def _rescale(
        graph: torch.fx.Graph, node: torch.fx.Node, source: QuantArgs, result: QuantArgs
    ) -> None:
        zero_point = 0
        if result.dtype == torch.int8:
            zero_point = -1 - result.get_zp_per_tensor()
        scale = source.get_scale_per_tensor() / result.get_scale_per_tensor()
        with graph.inserting_before(node):
            rescale = create_node(
                graph,
                exir_ops.backend.tosa.RESCALE.default,
                (
                    node.args[0],
                    result.dtype,
                    [scale],
                    source.get_zp_per_tensor(),
                    zero_point,
                ),
                from_node=node,
            )
        node.update_arg(0, rescale)
        node.meta["input_qparams"] = {0: result._replace(zp=zero_point)}
