# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Reasons of stock in words: what is not quantized, what makes it, and why."""

import operator

import arm_ext
import pytest
import torch
from arm_ext.coverage import coverage, reject_reasons
from arm_ext.partitioner.reject_words import in_words
from arm_ext.targets import lower, quantize, TARGETS
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import Graph

MARKED = "Node was not marked as quantized in the Arm backend."
INPUTS = "One or more inputs were not quantized."
OUTPUTS = "One or more outputs were not quantized."
Q = exir_ops.edge.quantized_decomposed.quantize_per_tensor.default
DQ = exir_ops.edge.quantized_decomposed.dequantize_per_tensor.default
_edge = exir_ops.edge.aten


class Nodes:
    """A graph by hand: each node with a dtype, as the partitioner sees it."""

    def __init__(self):
        self.graph = Graph()

    def value(self, name, dtype=torch.float32):
        node = self.graph.placeholder(name)
        node.meta["val"] = torch.empty(2, dtype=dtype)
        return node

    def call(self, op, *args, dtype=torch.float32, line=None):
        node = self.graph.call_function(op, args)
        node.meta["val"] = torch.empty(2, dtype=dtype)
        if line:
            node.meta["stack_trace"] = f'File "m.py", line {line}, in forward\n  y = x'
        return node

    def quantized(self, name, scale=0.5):
        return self.call(DQ, self.value(name, torch.int8), scale, 0, -128, 127)

    def quantize(self, node):
        return self.call(Q, node, 0.5, 0, -128, 127, dtype=torch.int8)


def test_op_that_the_quantizer_does_not_know():
    nodes = Nodes()
    node = nodes.call(_edge.atan2.default, nodes.quantized("a"), nodes.quantized("b"))
    nodes.quantize(node)
    assert in_words(node, MARKED) == (
        f"{MARKED[:-1]}: the Arm quantizer does not know aten.atan2.default."
    )


def test_inputs_of_several_scales_are_given():
    nodes = Nodes()
    values = [nodes.quantized("a", 0.5), nodes.quantized("b", 0.25)]
    node = nodes.call(_edge.cat.default, values)
    nodes.quantize(node)
    said = in_words(node, MARKED)
    assert "knows aten.cat.default and left it" in said
    assert said.endswith("its inputs have the scales 0.5, 0.25.")


def test_what_is_not_quantized_is_named_with_its_producer_and_line():
    nodes = Nodes()
    sine = nodes.call(_edge.sin.default, nodes.value("x"), line=7)
    node = nodes.call(_edge.add.Tensor, sine, nodes.quantized("b"))
    nodes.call(_edge.cos.default, node, line=8)
    nodes.graph.output(node)
    assert in_words(node, INPUTS) == (
        f"{INPUTS[:-1]}: its input aten_sin_default (aten.sin.default, float32 at "
        "m.py:7) is not quantized."
    )
    said = in_words(node, OUTPUTS)
    assert "aten_cos_default (aten.cos.default, float32 at m.py:8) reads it" in said
    assert said.endswith("the model returns it as it is.")
    both = in_words(node, MARKED)
    assert "aten_sin_default" in both and "aten_cos_default" in both


@pytest.mark.parametrize(
    ("reads", "makes", "says"),
    [
        (torch.int64, torch.int64, "only float32 is quantized, and it is int64"),
        (torch.bool, torch.bool, "only float32 is quantized, and it is bool"),
        (torch.float64, torch.float64, "only float32 is quantized, and it is float64"),
        (torch.int32, torch.float32, "makes float32 of int32, which has no scale"),
    ],
)
def test_dtypes_that_have_no_scale(reads, makes, says):
    nodes = Nodes()
    node = nodes.call(_edge.expand_copy.default, nodes.value("x", reads), dtype=makes)
    assert says in in_words(node, MARKED)


def test_other_reasons_stay_and_schemas_go():
    nodes = Nodes()
    node = nodes.call(operator.getitem, nodes.value("x"), 0)
    assert in_words(node, "rank 7 is too much") == "rank 7 is too much"
    schema = f"<EdgeOpOverload: {_edge.sin.default.__name__}>: schema = "
    reason = f"No {schema}aten::sin(Tensor self) -> Tensor here."
    assert in_words(node, reason) == "No aten.sin.default here."


def test_op_that_is_another_in_the_model():
    """On stock, whose quantizer sees the one and whose partitioner the other."""

    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.column_stack([x * 2, x + 1]) * 2

    x = (torch.randn(2, 8),)
    target = TARGETS["ethos-u85-256"]
    with arm_ext.patched(only=()), reject_reasons():
        edge = lower(quantize(Model(), x, target), x, target)
    (left,) = coverage(edge).compute_left
    assert left.op == "aten.cat.default"
    (reason,) = left.reasons
    assert "aten.column_stack.default in the model" in reason
    assert "it knows aten.cat.default" in reason and "have the scales" in reason
    assert "column_stack" in left.source.code


def test_line_of_a_cast_that_a_pass_added():
    class Model(torch.nn.Module):
        def forward(self, i, x):
            return x * i

    inputs = (torch.arange(3), torch.randn(3))
    with reject_reasons():
        edge = lower(Model(), inputs, TARGETS["vgf"])
    (left,) = coverage(edge).left
    assert left.op == "dim_order_ops._to_dim_order_copy.default"
    assert left.source.file == __file__ and left.source.code == "return x * i"
