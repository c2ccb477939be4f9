# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What is selected keeps the input's qparams; an index is not quantized."""

import pytest
import torch
from arm_ext.programs._program import Model
from arm_ext.targets import quantize, TARGETS
from executorch.backends.arm.ethosu import EthosUCompileSpec
from executorch.backends.arm.quantizer import (
    EthosUQuantizer,
    get_symmetric_quantization_config,
)
from torch.export import export
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e

X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
SELECTIONS = {
    "topk": lambda m, x: tuple(x.topk(3)),
    "sort": lambda m, x: tuple(x.sort()),
    "stable sort": lambda m, x: tuple(x.sort(stable=True)),
    "kthvalue": lambda m, x: tuple(x.kthvalue(2)),
}
PLACES = {
    "argmin": lambda m, x: x.argmin(1),
    "argmax": lambda m, x: x.argmax(),
    "argsort": lambda m, x: x.argsort(),
}


def qparams(module, kind):
    return [
        node.args[1:]
        for node in module.graph.nodes
        if node.op == "call_function"
        and node.target.__name__.startswith(f"{kind}_per_tensor")
    ]


@pytest.mark.parametrize("quantization", ["int8", "a16w8"])
@pytest.mark.parametrize("name", SELECTIONS)
def test_values_have_the_qparams_of_the_input(name, quantization):
    module = quantize(
        Model(SELECTIONS[name]), (X,), TARGETS["ethos-u85-256"], quantization
    )
    given, selected = qparams(module, "quantize")
    assert given == selected
    codes = torch.round(X / given[0]) + given[1]
    seen = (codes.clamp(*given[2:4]) - given[1]) * given[0]
    assert torch.isin(module(X)[0], seen).all()


@pytest.mark.parametrize("name", PLACES)
def test_an_index_is_not_quantized(name):
    module = quantize(Model(PLACES[name]), (X,), TARGETS["ethos-u85-256"])
    assert len(qparams(module, "quantize")) == 1
    assert module(X).dtype == torch.int64


def test_the_index_of_one_tensor_does_not_share_qparams_with_what_it_picks():
    model = Model(lambda m, x: (x * 50)[torch.relu(x).sum(1).topk(2).indices])
    module = quantize(model, (X,), TARGETS["ethos-u85-256"])
    scales = {scale for scale, *_ in qparams(module, "quantize")}
    assert max(scales) > 20 * min(scales)


def test_quantization_aware_training():
    quantizer = EthosUQuantizer(EthosUCompileSpec("ethos-u85-256"))
    quantizer.set_global(get_symmetric_quantization_config(is_qat=True))
    exported = export(Model(SELECTIONS["topk"]), (X,)).module(check_guards=False)
    prepared = prepare_qat_pt2e(exported, quantizer)
    prepared(X)
    given, selected = qparams(convert_pt2e(prepared), "quantize")
    assert given == selected
