# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from typing import Set, Type

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.backends.arm._passes.fuse_constant_ops_pass import FuseConstantArgsPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass
from torch.export import ExportedProgram
from torch.fx.passes.infra.pass_base import PassResult

_aten = exir_ops.edge.aten


class KeepMovedConstantsQuantizedPass(ArmOpTargetedPass):
    """Have the qparams of a quantized constant stay when it is viewed or permuted.

    ``CanonicalizeGatherPass`` moves the values in front of a gather about, between
    their dequantize and the gather. Once the dequantize is folded that op has qparams
    for its input alone, and ``FuseConstantArgsPass`` makes a float constant of it.

    Input graph::

        constant: int8 -> permute_copy(input_qparams) -> GATHER

    Output graph::

        constant: int8 -> permute_copy(input_qparams, output_qparams) -> GATHER

    """

    _passes_required_after: Set[Type[ExportPass]] = {FuseConstantArgsPass}
    target_ops = (_aten.permute_copy.default, _aten.view_copy.default)

    def __init__(self, exported_program: ExportedProgram, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.exported_program = exported_program

    def call(self, graph_module: torch.fx.GraphModule) -> PassResult:
        for op in self.target_ops:
            for node in graph_module.graph.find_nodes(op="call_function", target=op):
                qparams = node.meta.get("input_qparams")
                is_annotated = bool(node.meta.get("output_qparams"))
                if qparams and not is_annotated and self._is_constant(node.args[0]):
                    node.meta["output_qparams"] = {0: qparams[0]}
        return PassResult(graph_module, False)

    def _is_constant(self, node: torch.fx.Node) -> bool:
        inputs = self.exported_program.graph_signature.user_inputs
        return node.op == "placeholder" and node.name not in inputs
