# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``coverage``: what was delegated, what was not, and every reason for it."""

import inspect

import pytest
import torch
from arm_ext.coverage import coverage, LeftOp, reject_reasons, Source
from arm_ext.targets import lower, quantize, TARGETS
from executorch.backends.arm.operator_support import tosa_supported_operators
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir.backend.utils import WhyNoPartitionReporter

UNKNOWN = "Not included in BaseTOSASupportList or a registered tosa_support_check"


class Mixed(torch.nn.Module):
    """Ops that stay behind for one reason, for several and in a branch."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        y = self.linear(x)
        angle = torch.atan2(y, y + 2.0)  # one reason
        wide = torch.atan2(y.double(), y.double())  # several
        branch = torch.cond(
            y.sum() > 0, lambda a: torch.atan2(a * 2.0, a), lambda a: a + 1.0, (y,)
        )
        return angle, wide, branch


@pytest.fixture(scope="module")
def mixed():
    torch.manual_seed(0)
    with reject_reasons():
        return lower(Mixed().eval(), (torch.randn(4, 8),), TARGETS["vgf"])


def left(edge, op):
    return [found for found in coverage(edge).left if found.op == op]


def test_every_left_op_has_a_reason(mixed):
    assert all(op.reasons for op in coverage(mixed).left), coverage(mixed).left


def test_reasons_are_all_there_and_in_order(mixed):
    single, several, *_ = (op for op in left(mixed, "aten.atan2.default"))
    reasons = {op.reasons for op in left(mixed, "aten.atan2.default")}
    assert (UNKNOWN,) in reasons
    (double,) = (r for r in reasons if len(r) > 1)
    assert UNKNOWN in double
    assert any("float64" in reason for reason in double)


def test_branches_are_counted(mixed):
    found = coverage(mixed)
    assert found.cpu_ops.count("aten.atan2.default") == 3
    assert found.cpu_ops.count("cond") == 1
    # Around atan2 in the main graph, and one more in each branch.
    assert found.delegates >= 3


def test_source_is_the_line_of_the_model(mixed):
    _, first = inspect.getsourcelines(Mixed)
    sources = [op.source for op in left(mixed, "aten.atan2.default")]
    (single,) = (s for s in sources if s.code.startswith("angle ="))
    assert single.file == __file__ and single.line > first
    assert str(single) == f"{single.file}:{single.line}: {single.code}"


def test_line_of_the_model_and_not_of_torch():
    module = torch.nn.Linear(8, 8).to(torch.float64).eval()

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x):
            return self.inner(x)

    x = torch.randn(2, 8, dtype=torch.float64)
    edge = lower(Outer().eval(), (x,), TARGETS["vgf"])
    assert {op.source.code for op in coverage(edge).left} == {"return self.inner(x)"}


def test_without_the_context_no_reasons_but_the_same_ops(mixed):
    torch.manual_seed(0)
    plain = lower(Mixed().eval(), (torch.randn(4, 8),), TARGETS["vgf"])
    assert all(op.reasons == () for op in coverage(plain).left)
    assert coverage(plain).cpu_ops == coverage(mixed).cpu_ops
    assert coverage(plain).delegates == coverage(mixed).delegates


def test_context_does_not_change_the_payload():
    def payload():
        torch.manual_seed(0)
        module, x = torch.nn.Linear(8, 8).eval(), torch.randn(4, 8)
        return lower(module, (x,), TARGETS["vgf"]).to_executorch().buffer

    plain = payload()
    with reject_reasons():
        assert payload() == plain


def test_context_restores_every_symbol_also_after_an_error():
    def symbols():
        return (
            inspect.getattr_static(WhyNoPartitionReporter, "report_reject"),
            inspect.getattr_static(TOSAPartitioner, "_tag_module"),
            tosa_supported_operators.chain,
        )

    before = symbols()
    with pytest.raises(RuntimeError, match="inside"):
        with reject_reasons():
            raise RuntimeError("inside")
    assert all(a is b for a, b in zip(before, symbols()))


def test_reporters_that_only_try_a_node_do_not_count():
    module, x = Mixed().eval(), torch.randn(4, 8)
    with reject_reasons():
        edge = lower(module, (x,), TARGETS["vgf"])
        for node in edge.exported_program().graph.nodes:
            WhyNoPartitionReporter().report_reject(node, "only tried")
    assert not any("only tried" in op.reasons for op in coverage(edge).left)


def test_partitions_rejected_whole_have_a_reason():
    x = torch.randn(4, 8)

    class View(torch.nn.Module):
        def forward(self, x):
            return x.view(8, 4)

    with reject_reasons():
        edge = lower(View().eval(), (x,), TARGETS["vgf"])
    (op,) = coverage(edge).left
    assert "Partition contained only ops which are removed" in op.reasons[0]


def test_quantize_and_dequantize_are_no_compute_ops():
    module, x = torch.nn.Linear(8, 8).eval(), torch.randn(4, 8)
    target = TARGETS["ethos-u85-256"]
    found = coverage(lower(quantize(module, (x,), target), (x,), target))
    assert found.delegates == 1
    assert len(found.cpu_ops) == 2 and found.compute_ops == ()


def test_plain_data():
    source = Source("model.py", 3, "return x.argmin(-1)")
    op = LeftOp("argmin", "aten.argmin.default", ("a", "b"), source)
    assert op == LeftOp("argmin", "aten.argmin.default", ("a", "b"), source)
    assert hash(op) == hash(op)
