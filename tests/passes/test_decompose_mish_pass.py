# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Mish in float becomes eight ops; a quantized one is left to the table."""

import pytest
import torch
from arm_ext.passes.decompose_mish_pass import DecomposeMishPass
from executorch.backends.arm._passes.quant_args import QuantArgs
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import export

aten = exir_ops.edge.aten
CAST = exir_ops.edge.dim_order_ops._to_dim_order_copy.default


class Mish(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.mish(x)


def edge_module(x):
    """Return the edge graph of a mish that was kept whole."""
    config = EdgeCompileConfig(
        _check_ir_validity=False, preserve_ops=[torch.ops.aten.mish.default]
    )
    edge = to_edge(export(Mish(), (x,)), compile_config=config)
    return edge.exported_program().graph_module


def targets(module):
    return [node.target for node in module.graph.nodes if node.op == "call_function"]


X = torch.linspace(-87, 30, 1001)


def test_what_mish_becomes():
    result = DecomposeMishPass()(edge_module(X))
    found = targets(result.graph_module)
    assert sorted(map(str, found)) == sorted(
        map(
            str,
            [aten.full.default, aten.clamp.default, aten.exp.default]
            + [aten.add.Tensor] * 2
            + [aten.mul.Tensor] * 3
            + [aten.reciprocal.default],
        )
    )
    (got,) = result.graph_module(X)
    exact = torch.nn.functional.mish(X.double())
    assert ((got - exact) / exact.where(exact != 0, 1.0)).abs().max() < 5e-7


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_computed_in_fp32(dtype):
    x = X.to(dtype)
    result = DecomposeMishPass()(edge_module(x))
    found = targets(result.graph_module)
    assert found.count(CAST) == 2
    inner = [n for n in result.graph_module.graph.nodes if n.target == aten.mul.Tensor]
    assert {node.meta["val"].dtype for node in inner} == {torch.float32}
    (got,) = result.graph_module(x)
    assert torch.equal(got, torch.nn.functional.mish(x))


def test_a_quantized_mish_stays():
    module = edge_module(X)
    (mish,) = [n for n in module.graph.nodes if n.target == aten.mish.default]
    qparams = QuantArgs(scale=0.1, zp=0, qmin=-128, qmax=127, dtype=torch.int8)
    mish.meta["input_qparams"] = mish.meta["output_qparams"] = {0: qparams}
    result = DecomposeMishPass()(module)
    assert targets(result.graph_module) == [aten.mish.default]


def test_a_graph_without_mish_is_not_traced_again():
    module = DecomposeMishPass()(edge_module(X)).graph_module
    result = DecomposeMishPass()(module)
    assert result.graph_module is module and not result.modified
