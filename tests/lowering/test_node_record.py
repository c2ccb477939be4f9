# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What is recorded is what the pass itself would have recorded."""

import pytest
import torch
from arm_ext.lowering import fake_results, node_record
from executorch.exir.pass_base import _ExportPassBase, ExportPass, ProxyValue
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import Dim, export


class Several(torch.nn.Module):
    """Lists, scalars, keyword arguments, several outputs and one output in two ops."""

    def forward(self, x):
        values, indices = torch.topk(x, 2)
        joined = torch.cat([values, values.to(torch.float16).to(torch.float32)], 1)
        padded = torch.ops.aten.constant_pad_nd(joined, [1, 1], float("nan"))
        return padded + torch.full_like(padded, 2), indices, x.sum((0, 1), True)


class Sized(torch.nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0] * 4) + x.shape[0]


class Constant(torch.nn.Module):
    def forward(self, x):
        return x + torch.tensor([1.0, 2.0, 3.0, 4.0])


class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + x, lambda x: -x, (x,))


def programs():
    x = torch.ones(3, 4)
    dynamic = ({0: Dim("n", min=2, max=8)},)
    return {
        "several": export(Several(), (x,)),
        "sized": export(Sized(), (x,), dynamic_shapes=dynamic),
        "constant": export(Constant(), (x,)),
        "branches": export(Branches(), (x,)),
    }


class Count(ExportPass):
    """Retraces; every addition is replaced by two."""

    def call_operator(self, op, args, kwargs, meta):
        result = super().call_operator(op, args, kwargs, meta)
        if op is torch.ops.aten.add.Tensor:
            result = super().call_operator(op, (result, 0.0), kwargs, meta)
        return result


def described(module):
    return [
        [
            (
                node.name,
                node.op,
                str(node.target),
                str(node.args),
                str(node.kwargs),
                [type(arg) for arg in node.args],
                {k: str(v) for k, v in node.meta.items() if k != "from_node"},
                [source.name for source in node.meta.get("from_node", ())],
            )
            for node in graph_module.graph.nodes
        ]
        for graph_module in module.modules()
        if isinstance(graph_module, torch.fx.GraphModule)
    ]


@pytest.fixture
def recorded(monkeypatch):
    """Record as the fix does; return whether each op was plain."""
    stock, plain = _ExportPassBase._fx, []

    def fx(self, kind, target, args, kwargs, meta):
        if kind != "call_function":
            return stock(self, kind, target, args, kwargs, meta)
        result = node_record.record(self, target, args, kwargs, meta)
        plain.append(result is not None)
        return (
            stock(self, kind, target, args, kwargs, meta) if not plain[-1] else result
        )

    monkeypatch.setattr(_ExportPassBase, "_fx", fx)
    return plain


@pytest.mark.parametrize("name", ["several", "sized", "constant", "branches"])
def test_the_graph_is_the_same(name, monkeypatch, recorded):
    program = programs()[name]
    with fake_results.remembered():
        module = program.graph_module
        for _ in range(2):
            module = Count()(module).graph_module
    assert recorded
    assert all(recorded) == (name != "branches")
    monkeypatch.undo()
    stock = Count()(Count()(program.graph_module).graph_module).graph_module
    assert described(module) == described(stock)


def test_values_have_memory_of_their_own(recorded):
    with fake_results.remembered():
        module = programs()["several"].graph_module
        for _ in range(2):
            module = Count()(module).graph_module
    values = [node.meta["val"] for node in module.graph.nodes]
    tensors = [value for value in values if isinstance(value, FakeTensor)]
    memory = {tensor.untyped_storage()._cdata for tensor in tensors}
    assert len(memory) == len(tensors)


def test_a_value_without_a_proxy_is_left_to_the_pass():
    node = torch.fx.Graph().placeholder("x")
    export_pass = ExportPass()
    args = (ProxyValue(torch.ones(2), node),)
    assert node_record.record(export_pass, torch.relu, args, {}, None) is None
