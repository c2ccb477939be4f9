# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A fast lowering is the stock lowering, byte for byte."""

import collections
import gc
import inspect
import threading

import arm_ext
import pytest
import torch
from arm_ext.programs.partition_time import Blocks
from arm_ext.targets import lower, quantize, TARGETS
from executorch.backends.arm.vgf import VgfBackend
from executorch.exir import (
    EdgeCompileConfig,
    lowered_backend_module,
    to_edge_transform_and_lower,
)
from executorch.exir.pass_base import ExportPass
from torch.export import Dim, export
from torch.fx import Graph, GraphModule, symbolic_trace

FAST = ["partitioner", "fast-lowering"]


class Convolutions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(4)
        self.second = torch.nn.Conv2d(4, 4, 3, padding=1, groups=2)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        x = torch.nn.functional.max_pool2d(x + self.second(x), 2)
        return torch.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.qkv = torch.nn.Linear(8, 24)
        self.out = torch.nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        weights = torch.softmax(q @ k.transpose(-1, -2) / 3, -1)
        return x + torch.nn.functional.gelu(self.out(weights @ v))


class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(
            x.sum() > 0,
            lambda x: torch.atan2(x + x, x) * x,
            lambda x: torch.relu(x) - x,
            (x,),
        )


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(1, 8))

    def forward(self, x):
        self.total.add_(x)
        return self.total * 2


class Shared(torch.nn.Module):
    """One weight in two partitions, several outputs, an output used inside."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 8))

    def forward(self, x):
        a = x * self.weight
        b = torch.atan2(a, x) * self.weight
        return a, b, torch.split(b, 4, -1)[1]


class Filled(torch.nn.Module):
    """A constant that is written to: torch hands it out as it is, or as an alias."""

    def forward(self, x):
        filled = torch.full_like(x, 0)
        filled.fill_(-3)
        return filled * x, torch.ones_like(x) + x


def ramp(*shape):
    return torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape)


PROGRAMS = {
    "linear": (torch.nn.Linear(8, 4), ramp(2, 8)),
    "convolutions": (Convolutions(), ramp(1, 3, 16, 16)),
    "attention": (Attention(), ramp(1, 4, 8)),
    "blocks": (Blocks(4, 8), ramp(1, 8)),
    "branches": (Branches(), ramp(1, 8)),
    "filled": (Filled(), ramp(2, 3)),
    "counting": (Counting(), ramp(1, 8)),
    "shared": (Shared(), ramp(2, 8)),
}


def artifacts(edge):
    """Return all that a lowering hands out: the .pte, payloads, names and targets."""
    graphs, payloads = [], []
    for method in sorted(edge.methods):
        top = edge.exported_program(method).graph_module
        for name, module in top.named_modules():
            if isinstance(module, GraphModule):
                graphs.append([(n.name, str(n.target)) for n in module.graph.nodes])
            elif hasattr(module, "processed_bytes"):
                payloads.append((name, module.processed_bytes))
    return edge.to_executorch().buffer, graphs, payloads


def both_ways(lower_it):
    with arm_ext.patched(only=["partitioner"]):
        stock = artifacts(lower_it())
    with arm_ext.patched(only=FAST):
        assert arm_ext.status()[-1].state == "applied"
        return stock, artifacts(lower_it())


@pytest.mark.parametrize("name", PROGRAMS)
def test_float_is_identical(name):
    module, x = PROGRAMS[name]
    stock, fast = both_ways(lambda: lower(module.eval(), (x,), TARGETS["vgf"]))
    assert fast == stock


@pytest.mark.parametrize(
    "name, target",
    [
        ("convolutions", "ethos-u85-256"),
        ("attention", "ethos-u85-256"),
        ("blocks", "ethos-u85-256"),
        ("filled", "ethos-u85-256"),
        ("linear", "vgf-int"),
        ("convolutions", "ethos-u55-128"),
    ],
)
def test_quantized_is_identical(name, target):
    module, x = PROGRAMS[name]
    with arm_ext.patched(only=()):
        module = quantize(module.eval(), (x,), TARGETS[target])
    stock, fast = both_ways(lambda: lower(module, (x,), TARGETS[target]))
    assert fast == stock


def test_identical_beside_all_other_fixes():
    module, x = PROGRAMS["attention"]
    with arm_ext.patched(disable=["fast-lowering"]):
        stock = artifacts(lower(module.eval(), (x,), TARGETS["vgf"]))
    with arm_ext.patched():
        fast = artifacts(lower(module.eval(), (x,), TARGETS["vgf"]))
    assert fast == stock


def test_dynamic_shape_is_identical():
    shapes = ({0: Dim("n", min=2, max=8)},)
    program = export(torch.nn.ReLU(), (ramp(4, 8),), dynamic_shapes=shapes)
    stock, fast = both_ways(lambda: lower(program, (), TARGETS["vgf"]))
    assert fast == stock


def test_several_methods_are_identical():
    def lower_two():
        programs = {
            "encode": export(Convolutions().eval(), (ramp(1, 3, 16, 16),)),
            "decode": export(Blocks(2, 8).eval(), (ramp(1, 8),)),
        }
        return to_edge_transform_and_lower(
            programs,
            partitioner=[TARGETS["vgf"].partitioner()],
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
        )

    def seeded():
        torch.manual_seed(0)
        return lower_two()

    stock, fast = both_ways(seeded)
    assert fast == stock


def work(count, monkeypatch):
    """Lower ``count`` blocks; count what is done for every partition."""
    calls = collections.Counter()

    def counted(owner, name):
        stock = getattr(owner, name)

        def wrapper(*args, **kwargs):
            calls[name] += 1
            return stock(*args, **kwargs)

        monkeypatch.setattr(owner, name, wrapper)

    with monkeypatch.context() as monkeypatch:
        counted(Graph, "python_code")
        counted(Graph, "node_copy")
        counted(Graph, "create_node")
        lower(Blocks(count, 8).eval(), (ramp(1, 8),), TARGETS["vgf"])
    return calls


def test_work_is_linear_in_the_number_of_partitions(monkeypatch):
    with arm_ext.patched(only=FAST):
        one, two, three = (work(count, monkeypatch) for count in (1, 2, 3))
    for name in one:
        assert three[name] - two[name] == two[name] - one[name], name
    with arm_ext.patched(only=["partitioner"]):
        one, two, three = (work(count, monkeypatch) for count in (1, 2, 3))
    assert three["node_copy"] - two["node_copy"] > two["node_copy"] - one["node_copy"]


def is_deferred():
    module = symbolic_trace(torch.nn.ReLU())
    return not inspect.isfunction(vars(type(module)).get("forward"))


def test_scope_is_the_lowering(monkeypatch):
    seen = []

    def preprocess(*args):
        elsewhere = []
        thread = threading.Thread(target=lambda: elsewhere.append(is_deferred()))
        thread.start()
        thread.join()
        seen.append((is_deferred(), *elsewhere))
        return stock(*args)

    with arm_ext.patched(only=FAST), monkeypatch.context() as context:
        stock = VgfBackend.preprocess
        context.setattr(VgfBackend, "preprocess", staticmethod(preprocess))
        edge = lower(torch.nn.ReLU(), (ramp(2),), TARGETS["vgf"])
        assert seen == [(True, False)]
        assert not is_deferred()
    for module in edge.exported_program().graph_module.modules():
        if isinstance(module, GraphModule):
            assert inspect.isfunction(vars(type(module))["forward"])


def test_failure_leaves_nothing_behind(monkeypatch):
    def preprocess(*args):
        raise RuntimeError("no compiler today")

    with arm_ext.patched(only=FAST):
        with monkeypatch.context() as context:
            context.setattr(VgfBackend, "preprocess", staticmethod(preprocess))
            with pytest.raises(RuntimeError, match="no compiler today"):
                lower(torch.nn.ReLU(), (ramp(2),), TARGETS["vgf"])
        assert not is_deferred()
        assert lower(torch.nn.ReLU(), (ramp(2),), TARGETS["vgf"]).to_executorch()


def test_lowering_inside_a_lowering(monkeypatch):
    inner = []

    def preprocess(*args):
        if not inner:
            inner.append(None)
            inner[0] = lower(torch.nn.Sigmoid(), (ramp(2),), TARGETS["vgf"])
        return stock(*args)

    with arm_ext.patched(only=FAST):
        alone = artifacts(lower(torch.nn.ReLU(), (ramp(2),), TARGETS["vgf"]))
        stock = VgfBackend.preprocess
        with monkeypatch.context() as context:
            context.setattr(VgfBackend, "preprocess", staticmethod(preprocess))
            nested = artifacts(lower(torch.nn.ReLU(), (ramp(2),), TARGETS["vgf"]))
    assert nested == alone
    assert inner[0].to_executorch().buffer


def test_another_sort_in_torch_is_a_reason_to_skip(monkeypatch):
    from arm_ext.fixes import fast_lowering

    monkeypatch.setattr(fast_lowering, "legalize_graph", lambda module: module)
    need = fast_lowering.needs(None)
    assert need.state == "skipped" and "legalize_graph" in need.reason


def test_another_record_of_an_op_is_a_reason_to_skip(monkeypatch):
    from arm_ext.fixes import fast_lowering

    stock = ExportPass._fx

    def renamed(self, kind, target, args, kwargs, meta):
        meta["origin"] = "elsewhere"
        return stock(self, kind, target, args, kwargs, meta)

    with arm_ext.patched(only=()):
        assert fast_lowering.needs(None).state == "applied"
        monkeypatch.setattr(ExportPass, "_fx", renamed)
        need = fast_lowering.needs(None)
    assert need.state == "skipped" and "record" in need.reason


def test_garbage_collector_is_as_before():
    from arm_ext.fixes.fast_lowering import _less_garbage_collection

    before = gc.get_threshold()
    with _less_garbage_collection():
        inside = gc.get_threshold()
        assert inside != before and gc.get_freeze_count()
        with _less_garbage_collection():
            assert gc.get_threshold() == inside
        assert gc.get_threshold() == inside and gc.get_freeze_count()
    assert gc.get_threshold() == before and not gc.get_freeze_count()
    with pytest.raises(RuntimeError), _less_garbage_collection():
        raise RuntimeError
    assert gc.get_threshold() == before and not gc.get_freeze_count()


def test_revert_restores_stock():
    names = {
        GraphModule: "recompile",
        torch.export.ExportedProgram: "run_decompositions",
        torch.fx.traceback.NodeSource: "__deepcopy__",
        lowered_backend_module: "legalize_graph",
    }

    def symbols():
        return [vars(owner).get(name) for owner, name in names.items()]

    with arm_ext.patched(only=()):
        stock = symbols()
    with arm_ext.patched(only=FAST):
        assert symbols() != stock
    with arm_ext.patched(only=()):
        assert all(a is b for a, b in zip(symbols(), stock))
