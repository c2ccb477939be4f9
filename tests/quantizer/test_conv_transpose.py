# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A transposed convolution as the quantizer gets to see it."""

import arm_ext
import pytest
import torch
from arm_ext.quantizer.conv_transpose import constants_first
from arm_ext.targets import TARGETS
from executorch.backends.arm.quantizer import get_symmetric_quantization_config
from torch.export import Dim, export

U85 = TARGETS["ethos-u85-256"]
CONV2D = torch.ops.aten.conv_transpose2d.input


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def annotated(model, x, per_channel=True, is_qat=False, **export_options):
    """Return the graph transformed and annotated, and what eager gives."""
    config = get_symmetric_quantization_config(
        is_per_channel=per_channel, is_qat=is_qat
    )
    quantizer = U85.quantizer("int8")
    quantizer.set_global(config)
    module = export(model.eval(), (x,), **export_options).module(check_guards=False)
    module = quantizer.annotate(quantizer.transform_for_annotation(module))
    module.recompile()
    torch.testing.assert_close(module(x), model(x), rtol=1e-5, atol=1e-6)
    return module


def only(module, target):
    (node,) = [node for node in module.graph.nodes if node.target == target]
    return node


def annotation(node):
    return node.meta["quantization_annotation"]


@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("per_channel", [True, False])
def test_weight_and_bias_have_a_scale_an_output_channel(groups, per_channel):
    model = torch.nn.ConvTranspose1d(8, 16, 4, stride=2, groups=groups)
    conv = only(annotated(model, torch.randn(1, 8, 9), per_channel), CONV2D)
    x, weight, bias = conv.args[:3]
    specs = annotation(conv).input_qspec_map
    assert weight.meta["val"].shape == (8, 16, 1, 4)
    assert conv.args[6] == 1
    assert specs[x].dtype is torch.int8 and specs[bias].dtype is torch.int32
    if per_channel:
        assert specs[weight].ch_axis == 1
        assert specs[weight].qscheme is torch.per_channel_symmetric
    else:
        assert specs[weight].qscheme is torch.per_tensor_symmetric


def test_an_activation_takes_the_output_scale_and_the_view_goes_behind():
    model = torch.nn.Sequential(torch.nn.ConvTranspose1d(8, 4, 3), torch.nn.ReLU())
    module = annotated(model, torch.randn(1, 8, 9))
    conv, relu = only(module, CONV2D), only(module, torch.ops.aten.relu.default)
    assert relu.args[0] is conv
    assert annotation(conv).output_qspec is None
    assert annotation(relu).output_qspec is not None
    (squeeze,) = relu.users
    assert squeeze.target == torch.ops.aten.squeeze.dim


def test_a_batch_norm_without_batch_axis_has_other_channels():
    conv, norm = torch.nn.ConvTranspose1d(8, 4, 3), torch.nn.BatchNorm1d(11)
    module = annotated(torch.nn.Sequential(conv, norm), torch.randn(8, 9))
    (behind,) = only(module, CONV2D).users
    assert behind.target == torch.ops.aten.squeeze.dim


def test_the_user_s_choice_holds():
    quantizer = U85.quantizer("int8").set_module_type(torch.nn.ConvTranspose1d, None)
    model, x = torch.nn.ConvTranspose1d(8, 4, 3).eval(), torch.randn(1, 8, 9)
    module = export(model, (x,)).module(check_guards=False)
    module = quantizer.transform_for_annotation(module)
    only(module, torch.ops.aten.conv_transpose1d.default)


def test_groups_of_two_dimensions_stay_where_they_can():
    model, x = torch.nn.ConvTranspose2d(8, 8, 3, groups=2), torch.randn(1, 8, 5, 5)
    assert only(annotated(model, x, per_channel=True), CONV2D).args[6] == 1
    assert only(annotated(model, x, per_channel=False), CONV2D).args[6] == 2
    assert only(annotated(model, x, is_qat=True), CONV2D).args[6] == 2


@pytest.mark.parametrize(
    ("groups", "options"),
    [
        (2, {"is_qat": True}),
        (1, {"dynamic_shapes": ({0: Dim("n", min=2, max=8)},)}),
    ],
)
def test_what_is_refused_is_not_annotated(groups, options):
    model = torch.nn.ConvTranspose1d(8, 8, 3, groups=groups)
    module = annotated(model, torch.randn(3, 8, 9), **options)
    conv = only(module, torch.ops.aten.conv_transpose1d.default)
    assert not conv.meta.get("quantization_annotation")


def test_constants_first_keeps_the_program():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    x = torch.randn(2, 4)
    module = export(model, (x,)).module(check_guards=False)
    nodes = list(module.graph.nodes)
    for node in nodes:
        if node.op == "get_attr":
            next(iter(node.users)).prepend(node)
    constants_first(module.graph)
    module.graph.lint()
    module.recompile()
    ops = [node.op for node in module.graph.nodes]
    assert ops == sorted(ops, key=lambda op: op != "get_attr")
    assert torch.equal(module(x), model(x))
