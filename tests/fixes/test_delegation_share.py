# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The delegation summary gives the share of the compute nodes."""

import arm_ext
import pytest
import torch
from arm_ext.targets import lower, TARGETS
from executorch.devtools.backend_debug import get_delegation_info
from lowered import Call


def summary(model, **fixes):
    with arm_ext.patched():
        edge = lower(Call(model), (torch.randn(2, 3),), TARGETS["vgf"])
    module = edge.exported_program().graph_module
    with arm_ext.patched(**fixes):
        return get_delegation_info(module).get_summary()


@pytest.mark.parametrize(
    ("model", "share"),
    [
        (lambda x: torch.atan2(x, x + 3) * 2, "80.0% (4 of 5)"),
        (lambda x: torch.stack(torch.topk(x, 2)[:1]) + 1, "100.0%"),
        (lambda x: x, "none to delegate"),
    ],
    ids=["split", "whole", "empty"],
)
def test_share(model, share):
    stock = summary(model, only=())
    patched = summary(model)
    assert patched.startswith(stock)
    assert patched.removeprefix(stock).startswith("Delegated compute nodes: " + share)
