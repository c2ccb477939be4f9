# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``arm_ext.report``: what runs where, why, and what would take the rest."""

import json
from html.parser import HTMLParser

import arm_ext
import pytest
import torch
from arm_ext.cli import main
from arm_ext.reporting import Report
from arm_ext.reporting.explorer import model_explorer_graphs
from arm_ext.reporting.page import page
from arm_ext.targets import lower, TARGETS


class Split(torch.nn.Module):
    """Two delegates around an op that TOSA does not have."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        y = torch.relu(self.conv(x)).mean((2, 3))
        return torch.softmax(torch.atan2(self.head(y), y[:, :4]) * 2, -1)


IMAGE = (torch.randn(1, 3, 16, 16),)
CONV_MACS, LINEAR_MACS = 16 * 16 * 8 * 3 * 9, 8 * 4


def split():
    return Split().eval(), IMAGE


@pytest.fixture(scope="module")
def vgf():
    return arm_ext.report(*split(), name="split")


@pytest.fixture(scope="module")
def u85():
    return arm_ext.report(*split(), target="ethos-u85-256", quantize="int8")


def test_shares_count_ops_and_macs(vgf):
    assert len(vgf.delegates) == 2
    assert {op.op for op in vgf.compute if op.delegate is None} == {
        "aten.atan2.default"
    }
    assert sum(op.macs for op in vgf.ops) == CONV_MACS + LINEAR_MACS
    assert vgf.mac_share == 1
    assert vgf.op_share == (len(vgf.compute) - 1) / len(vgf.compute)
    assert not vgf.is_whole


def test_boundary_counts_what_delegates_read_and_hand_out(vgf):
    image, row = 4 * 3 * 16 * 16, 4 * 4
    # The image in; both operands of atan2 out; its result in; softmax out.
    assert vgf.boundary_bytes == image + 2 * row + row + row


def test_op_on_the_cpu_has_its_line_reasons_and_a_remedy(vgf):
    (op,) = vgf.cpu_ops
    assert op.op == "aten.atan2.default"
    assert "test_report.py" in op.source and "torch.atan2" in op.source
    assert op.reasons and "no TOSA op computes it" in op.remedies[0]


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (lambda x: (x.double() * 2.0).cos(), "compute in float32"),
        (lambda x: x.to(torch.bfloat16) * 2, "name the extension"),
        (lambda x: x.to(torch.int64) * 2**40, "use int32"),
    ],
    ids=["float64", "bf16", "int64"],
)
def test_remedy_is_about_what_has_to_change_first(model, remedy):
    class Model(torch.nn.Module):
        def forward(self, x):
            return model(x)

    found = arm_ext.report(Model(), (torch.randn(3),))
    assert all(remedy in op.remedies[0] for op in found.cpu_ops), found
    assert found.cpu_ops
    assert not any(
        "schema =" in reason for op in found.cpu_ops for reason in op.reasons
    )


def test_ethosu_has_velas_estimate(u85):
    for delegate in u85.delegates:
        assert delegate.estimate.cycles > 0
        assert delegate.estimate.sram_bytes > 0
        assert delegate.estimate.layers
    assert u85.mac_share == 1


def test_whole_model_can_be_asserted():
    found = arm_ext.report(torch.nn.Linear(4, 4).eval(), (torch.randn(2, 4),))
    assert found.is_whole and found.op_share == 1
    assert "nothing is left on the CPU" in str(found)


def test_stock_side_and_a_lowered_program(vgf):
    class Middle(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.mish(x * 2)

    x = (torch.randn(3),)
    stock = arm_ext.report(Middle(), x, target="vgf-int", quantize="int8", stock=True)
    patched = arm_ext.report(Middle(), x, target="vgf-int", quantize="int8")
    assert stock.side == "stock" and stock.cpu_ops
    assert patched.is_whole
    edge = lower(Split().eval(), IMAGE, TARGETS["vgf"])
    again = arm_ext.report(edge)
    assert (again.op_share, again.boundary_bytes) == (vgf.op_share, vgf.boundary_bytes)


def test_error_of_the_lowering_is_in_the_report():
    found = arm_ext.report(torch.nn.ReLU(), (torch.randn(2),), target="ethos-u85-300")
    assert found.error is None and "integers only" in found.warnings[0]
    found = arm_ext.report(*split(), target="ethos-u85-300", quantize="int8")
    assert "ethos-u85-300" in found.error
    assert not found.is_whole and found.error in str(found)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="'vfg' is no target; one of vgf"):
        arm_ext.report(*split(), target="vfg")
    program = torch.export.export(*split())
    with pytest.raises(ValueError, match="only a module can be quantized"):
        arm_ext.report(program, quantize="int8")


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.boxes, self.addresses = [], 0, []

    def handle_starttag(self, tag, attrs):
        self.boxes += tag == "rect"
        self.addresses += [v for k, v in attrs if k in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_whole_and_needs_no_network(vgf, u85):
    parser = _Page()
    parser.feed(page([vgf, u85]))
    assert parser.open == [] and parser.addresses == []
    assert parser.boxes == len(vgf.ops) + len(u85.ops)


def test_model_explorer_graph_names_its_edges(u85):
    collection = model_explorer_graphs(u85)
    (graph,) = collection["graphs"]
    assert collection["label"] == graph["id"]  # without a label no file is read
    ids = {node["id"] for node in graph["nodes"]}
    assert len(ids) == len(graph["nodes"]) == len(u85.ops)
    edges = [e for node in graph["nodes"] for e in node["incomingEdges"]]
    assert edges and all(edge["sourceNodeId"] in ids for edge in edges)


def test_command(tmp_path, capsys):
    source = tmp_path / "model.py"
    source.write_text(
        "import torch\n"
        "def make():\n"
        "    return torch.nn.Linear(4, 4).eval(), (torch.randn(1, 4),)\n"
    )
    files = {
        f"--{kind}": tmp_path / kind for kind in ("json", "html", "model-explorer")
    }
    arguments = [str(word) for pair in files.items() for word in pair]
    assert main(["report", f"{source}:make", *arguments]) == 0
    assert "nothing is left on the CPU" in capsys.readouterr().out
    (data,) = json.loads(files["--json"].read_text())
    assert data["is_whole"] and data["op_share"] == 1
    assert all(path.read_text() for path in files.values())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("model", "neither FILE.py:NAME"),
        ("missing.py:make", "no file missing.py"),
        ("json:dumps_", "dumps_"),
        ("os:getcwd", "must return a module and a tuple of its inputs"),
    ],
)
def test_command_says_what_is_wrong_with_the_model(model, message, capsys):
    assert main(["report", model]) == 2
    assert message in capsys.readouterr().err


def test_report_is_empty_without_ops():
    assert Report("m", "vgf").op_share == 1
