# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What the rewrite leaves of a transposed convolution, run as an edge program."""

import pytest
import torch
from arm_ext.passes.rewrite_transposed_conv_pass import RewriteTransposedConvPass
from executorch.backends.arm.tosa.specification import (
    TosaLoweringContext,
    TosaSpecification,
)
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import export

aten = exir_ops.edge.aten
FP = TosaSpecification.create_from_string("TOSA-1.0+FP")
U55 = TosaSpecification.create_from_string("TOSA-1.0+INT+int16+u55")


def rewritten(model, x, spec=FP):
    """Return the rewritten graph module and its outputs on the program's weights."""
    config = EdgeCompileConfig(_check_ir_validity=False)
    edge = to_edge(export(model.eval(), (x,)), compile_config=config)
    program = edge.exported_program()
    rewrite = RewriteTransposedConvPass(program)
    with TosaLoweringContext(spec):
        result = rewrite(program.graph_module)
    names = [n.name for n in result.graph_module.graph.nodes if n.op == "placeholder"]
    values = [program.state_dict.get(by_name(program, name), x) for name in names]
    return result, result.graph_module(*values)[0]


def by_name(program, name):
    signature = program.graph_signature
    return {**signature.inputs_to_parameters, **signature.inputs_to_buffers}.get(name)


def convolution(result):
    nodes = result.graph_module.graph.nodes
    (node,) = [n for n in nodes if n.target == aten.convolution.default]
    return node


def targets(result):
    nodes = result.graph_module.graph.nodes
    return [node.target for node in nodes if node.op == "call_function"]


@pytest.mark.parametrize("dilation", [1, 3])
def test_one_dimension_gets_a_unit_axis(dilation):
    torch.manual_seed(0)
    model = torch.nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, dilation=dilation)
    x = torch.randn(2, 4, 5)
    result, got = rewritten(model, x)
    node = convolution(result)
    assert node.args[3:] == ([1, 2], [0, 1], [1, 1], True, [0, 0], 1)
    assert node.args[1].meta["val"].shape == (4, 6, 1, 2 * dilation + 1)
    assert aten.constant_pad_nd.default not in targets(result)
    assert torch.allclose(got, model(x), atol=1e-6)


@pytest.mark.parametrize("stride", [(3, 1), (2, 3), (4, 4)])
@pytest.mark.parametrize("groups", [1, 2])
def test_ethos_u55_gets_a_plain_convolution(stride, groups):
    torch.manual_seed(0)
    model = torch.nn.ConvTranspose2d(4, 6, 3, stride=stride, groups=groups)
    x = torch.randn(1, 4, 5, 6)
    result, got = rewritten(model, x, U55)
    node = convolution(result)
    assert node.args[3] == [1, 1] and node.args[6] is False and node.args[8] == groups
    assert torch.allclose(got, model(x), atol=1e-6)


def test_a_crop_beyond_the_kernel():
    torch.manual_seed(0)
    model = torch.nn.ConvTranspose1d(4, 6, 2, stride=2, padding=4)
    x = torch.randn(1, 4, 9)
    result, got = rewritten(model, x)
    assert aten.slice_copy.Tensor in targets(result)
    assert torch.allclose(got, model(x), atol=1e-6)


@pytest.mark.parametrize(
    ("model", "x", "spec"),
    [
        (torch.nn.ConvTranspose2d(4, 6, 3, stride=3), torch.randn(1, 4, 5, 6), FP),
        (torch.nn.ConvTranspose2d(4, 6, 3, stride=2), torch.randn(1, 4, 5, 6), U55),
        (torch.nn.Conv1d(4, 6, 3, stride=2), torch.randn(1, 4, 9), U55),
    ],
)
def test_what_needs_no_rewrite_is_not_touched(model, x, spec):
    result, got = rewritten(model, x, spec)
    assert not result.modified
    assert torch.allclose(got, model(x), atol=1e-6)
