# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The dump folder says of each op on the CPU where it comes from, and all reasons."""

import arm_ext
import torch
from executorch.backends.arm.vgf import VgfCompileSpec, VgfPartitioner
from executorch.exir import to_edge_transform_and_lower

FIX = "reject-report"


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.atan2(x.double(), x.double()).float() * 2


def dumped(folder, methods=("forward",), partitioner=None):
    """Lower an op that stays on the CPU and one that does not; return the report."""
    export = torch.export.export(Model(), (torch.randn(2, 3),))
    spec = VgfCompileSpec().dump_intermediate_artifacts_to(str(folder))
    edge = to_edge_transform_and_lower(
        {name: export for name in methods},
        partitioner=[partitioner or VgfPartitioner(spec)],
    )
    report = folder / "partition_report.txt"
    return edge, report.read_text() if report.exists() else None


def test_report_has_every_reason_and_the_line(tmp_path):
    with arm_ext.patched():
        _, text = dumped(tmp_path)
    title, *paragraphs = text.strip().split("\n\n")
    assert title.startswith("VgfBackend, TOSA-1.0+FP") and "ops are delegated" in title
    (atan2,) = (p for p in paragraphs if p.startswith("aten_atan2_default"))
    assert "(aten.atan2.default)" in atan2
    assert "torch.atan2(x.double(), x.double())" in atan2
    assert "Not included in BaseTOSASupportList" in atan2
    assert "float64" in atan2  # the second reason


def test_a_second_lowering_replaces_it_and_methods_add_up(tmp_path):
    with arm_ext.patched():
        _, one = dumped(tmp_path)
        _, two = dumped(tmp_path, ("encode", "decode"))
        assert two == 2 * one
        assert dumped(tmp_path)[1] == one


def test_stock_writes_none_and_delegates_the_same(tmp_path):
    with arm_ext.patched(disable=[FIX]):
        stock, text = dumped(tmp_path)
        assert text is None
    with arm_ext.patched():
        patched, _ = dumped(tmp_path)
    assert patched.to_executorch().buffer == stock.to_executorch().buffer
