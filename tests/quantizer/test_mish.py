# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Mish is annotated one to one, as SiLU is, by either quantizer."""

import arm_ext
import pytest
import torch
from arm_ext.targets import QUANTIZATION, TARGETS
from executorch.backends.arm.operator_support.tosa_supported_operators import (
    is_quantized,
)
from executorch.backends.arm.quantizer import EthosUQuantizer
from torch.export import export
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

X = torch.randn(2, 4, generator=torch.Generator().manual_seed(0))


def quantized(model, composable, quantization):
    spec = TARGETS["ethos-u85-256"].compile_spec()
    quantizer = EthosUQuantizer(spec, use_composable_quantizer=composable)
    quantizer.set_global(QUANTIZATION[quantization]())
    prepared = prepare_pt2e(export(model, (X,)).module(check_guards=False), quantizer)
    prepared(X)
    return convert_pt2e(prepared)


@pytest.mark.filterwarnings("ignore:Using deprecated legacy quantizer")
@pytest.mark.parametrize("composable", [True, False])
@pytest.mark.parametrize("quantization", ["int8", "a16w8"])
def test_mish_has_q_and_dq_on_both_sides(composable, quantization):
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.mish(x.relu()), torch.ops.aten.mish_(x.neg())

    with arm_ext.patched():
        graph = quantized(Model(), composable, quantization).graph
    found = [n for n in graph.nodes if "mish" in str(n.target)]
    assert [str(n.target) for n in found] == ["aten.mish.default", "aten.mish_.default"]
    dtype = torch.int8 if quantization == "int8" else torch.int16
    for node in found:
        (user,) = node.users
        assert "dequantize_per_tensor" in str(node.args[0].target)
        assert "quantize_per_tensor" in str(user.target)
        assert node.args[0].args[-1] is dtype and user.args[-1] is dtype


@pytest.mark.parametrize("patched", [False, True])
def test_only_patched_marks_it_as_quantized(patched):
    """Its neighbours give it Q and DQ in stock too; the mark is what counts."""
    with arm_ext.patched(only=None if patched else ()):
        graph = quantized(torch.nn.Mish(), True, "int8").graph
    (mish,) = [n for n in graph.nodes if "mish" in str(n.target)]
    assert is_quantized(mish) is patched
