# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A where with a number, quantized: one delegate, masks limited as others are."""

import arm_ext
import pytest
import torch
from arm_ext.passes.decompose_where_number_pass import DecomposeWhereNumberPass
from arm_ext.targets import quantize, TARGETS
from lowered import Call, lower_and_run, payload
from torch.export import export

FIX = "where-number"
U85 = TARGETS["ethos-u85-256"]


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


def inputs():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 6, 6, generator=generator)
    return scores, torch.rand(2, 6, 6, generator=generator) > 0.3


def masked(scores, mask):
    scores = torch.where(mask, scores * 2, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, -1)


def test_masked_attention_is_one_delegate():
    result = lower_and_run(Call(masked), inputs(), U85, "int8")
    assert result.one_delegate and result.error() <= 1.0
    assert result.got[0][~inputs()[1]].max() == 0.0
    with arm_ext.patched(disable=[FIX]):
        stock = lower_and_run(Call(masked), inputs(), U85, "int8")
    assert stock.covered.delegates == 2 and len(stock.covered.compute_ops) == 2


def test_number_first_and_a_broadcast_mask():
    def model(x, mask):
        return torch.where(mask[:1, :, :1], 0.25, x + x)

    result = lower_and_run(Call(model), inputs(), U85, "int8")
    assert result.one_delegate and result.error() <= 1.0


@pytest.mark.parametrize(
    ("model", "decomposed"),
    [
        (lambda x, mask: torch.where(mask, x, -1), True),
        (lambda x, mask: torch.where(mask, 1.5, x), True),
        (lambda x, mask: torch.where(mask, x.int(), 0.5), False),
        (lambda x, mask: torch.where(mask, 1.0, 2.0) + x, False),
    ],
)
def test_dtype_is_that_of_eager(model, decomposed):
    module = export(Call(model), inputs()).module(check_guards=False)
    module = DecomposeWhereNumberPass(tfa_pass=True)(module).graph_module
    targets = [node.target for node in module.graph.nodes]
    assert (torch.ops.aten.where.self in targets) is decomposed
    torch.testing.assert_close(module(*inputs()), model(*inputs()), rtol=0, atol=0)


def test_other_programs_are_left_alone():
    def model(x, mask):
        return torch.where(mask, x, x * 2)

    with arm_ext.patched(disable=[FIX]):
        without = payload(quantize(Call(model), inputs(), U85), inputs(), U85)
    assert payload(quantize(Call(model), inputs(), U85), inputs(), U85) == without
