# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Quantized values are taken only where they are the input's codes."""

import operator

import pytest
import torch
from arm_ext.partitioner.topk_check import TopKCheck
from executorch.backends.arm.common.annotation_meta import ArmAnnotationInfo
from executorch.backends.arm.tosa import TosaSpecification
from executorch.exir.backend.utils import WhyNoPartitionReporter
from executorch.exir.dialects._ops import ops as exir_ops
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph

Q = exir_ops.edge.quantized_decomposed.quantize_per_tensor.default
DQ = exir_ops.edge.quantized_decomposed.dequantize_per_tensor.default
MARK = {
    "custom": {ArmAnnotationInfo.CUSTOM_META_KEY: ArmAnnotationInfo(quantized=True)}
}


class Reporter(WhyNoPartitionReporter):
    reasons = ()

    def report_reject(self, node, reason):
        self.reasons = (*self.reasons, reason)


def selected(scale, marked=(True, True)):
    """``dq(scale 0.5) -> topk -> getitem(0) -> q(scale)``."""
    graph = Graph()
    with FakeTensorMode():
        codes = graph.placeholder("x")
        codes.meta["val"] = torch.zeros(2, 8, dtype=torch.int8)
        rest = (0, -128, 127, torch.int8)
        source = graph.call_function(DQ, (codes, 0.5, *rest))
        source.meta["val"] = torch.zeros(2, 8)
        topk = graph.call_function(exir_ops.edge.aten.topk.default, (source, 3))
        topk.meta["val"] = torch.zeros(2, 8).topk(3)
        values = graph.call_function(operator.getitem, (topk, 0))
        values.meta["val"] = topk.meta["val"][0]
        user = graph.call_function(Q, (values, scale, *rest))
        user.meta["val"] = torch.zeros(2, 3, dtype=torch.int8)
    for node, is_marked in zip((topk, values), marked):
        node.meta.update(MARK if is_marked else {})
    return topk


@pytest.mark.parametrize(
    ("topk", "spec", "reason"),
    [
        (selected(0.5), "TOSA-1.0+INT+int16", None),
        (selected(0.25), "TOSA-1.0+INT+int16", "not quantized as the input is"),
        (selected(0.5, (True, False)), "TOSA-1.0+INT", "not quantized as the input is"),
        (selected(0.25, (False, False)), "TOSA-1.0+FP+INT", None),
        (selected(0.25, (False, False)), "TOSA-1.0+INT", "has no float"),
        (selected(0.5), "TOSA-1.0+INT+u55", "no GATHER"),
    ],
)
def test_values_must_be_codes_of_the_input(topk, spec, reason):
    reporter = Reporter()
    check = TopKCheck(TosaSpecification.create_from_string(spec), reporter)
    assert check.is_node_supported({}, topk) == (reason is None)
    assert (reason is None) == (reporter.reasons == ())
    assert reason is None or reason in reporter.reasons[0]
