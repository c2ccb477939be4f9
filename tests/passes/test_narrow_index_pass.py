# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Where the cast back to int64 ends, and what is left alone."""

import pytest
import torch
from arm_ext.passes.index_sources import fits_int32, index_source
from arm_ext.passes.narrow_index_pass import NarrowIndexPass
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import export
from torch.fx import Graph

CAST = "_to_dim_order_copy"


class Model(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))


def edge(function, *inputs):
    config = EdgeCompileConfig(_check_ir_validity=False)
    program = export(Model(function), inputs or (X,))
    return to_edge(program, compile_config=config).exported_program().graph_module


def op(node):
    return node.target.__name__.split(".")[-2] if "." in node.target.__name__ else ""


def narrowed(module, refused=()):
    """Run the pass; ``refused`` names ops that the partitioner does not take."""
    return NarrowIndexPass(lambda node: "no" if op(node) in refused else None)(module)


def reads(module, name):
    """The dtypes of what the ops called ``name`` read, the first input left out."""
    return [
        node.meta["val"].dtype
        for user in module.graph.nodes
        if user.op == "call_function" and op(user) == name
        for node in user.all_input_nodes[1:]
    ]


def int64_outputs(module):
    """The ops behind the int64 outputs, and the dtypes of their inputs."""
    return [
        (op(node), node.all_input_nodes[0].meta["val"].dtype)
        for node in module.graph.output_node().args[0]
        if node.meta["val"].dtype == torch.int64
    ]


def same(module, function):
    for actual, wanted in zip(module(X), function(X)):
        assert actual.dtype == wanted.dtype and torch.equal(actual, wanted)


def test_the_cast_goes_down_to_the_output():
    def function(x):
        index = x.argmax(1)
        return index.unsqueeze(1).expand(4, 3).permute(1, 0), x.gather(
            1, index[:, None]
        )

    module = edge(function)
    assert narrowed(module).modified
    assert int64_outputs(module) == [(CAST, torch.int32)]
    assert reads(module, "gather") == [torch.int32]
    same(module, function)


def test_the_indices_of_topk_get_an_op_of_their_own():
    def function(x):
        values, indices = x.topk(2, 0)
        return values + values, indices, x[indices[:, 0]]

    module = edge(function)
    assert narrowed(module).modified
    topks = [
        n for n in module.graph.nodes if n.op == "call_function" and op(n) == "topk"
    ]
    assert [len(node.users) for node in topks] == [1, 1]
    assert reads(module, "index") == [torch.int32]
    same(module, function)


def test_other_casts_read_the_int32():
    def function(x):
        index = x.argmin(0)
        return index.to(torch.int32), index.to(torch.float32), index

    module = edge(function)
    narrowed(module)
    assert int64_outputs(module) == [(CAST, torch.int32)]
    casts = [n for n in module.graph.nodes if n.op == "call_function" and op(n) == CAST]
    assert len(casts) == 3
    same(module, function)


def test_a_cat_with_another_int64_keeps_it():
    def function(x, other):
        return (torch.cat([x.argmax(0), other]),)

    other = torch.arange(3)
    module = edge(function, X, other)
    narrowed(module)
    assert int64_outputs(module) == [("cat", torch.int64)]
    assert torch.equal(module(X, other)[0], function(X, other)[0])


@pytest.mark.parametrize("refused", ["argmax", CAST])
def test_a_source_that_is_not_taken_is_left_as_it_was(refused):
    module = edge(lambda x: (x.argmax(1), x[x.argmax(0)]))
    before = str(module.graph)
    assert not narrowed(module, [refused]).modified
    assert str(module.graph) == before


def test_the_cast_stays_in_front_of_what_is_not_taken():
    def function(x):
        index = x.argmax(0)
        return x[index], index.reshape(2, 3)

    module = edge(function)
    narrowed(module, ["index", "view_copy"])
    assert reads(module, "index") == [torch.int64]
    assert int64_outputs(module) == [("view_copy", torch.int64)]
    same(module, function)


def test_places_are_written_by_int32_only_if_none_comes_twice():
    def function(x):
        return (
            x.index_put((x.argmax(0),), x[:1]),
            x[0].index_put((x[1].topk(3).indices.flip(0),), x[2, :3]),
            x.index_put((x[:, 0].argmin(0, keepdim=True),), x[:1]),
        )

    module = edge(function)
    narrowed(module)
    found = [
        dtype for dtype in reads(module, "index_put") if not dtype.is_floating_point
    ]
    assert found == [torch.int64, torch.int32, torch.int32]
    same(module, function)


def test_a_dimension_beyond_int32_is_left_alone():
    graph = Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(2**31 + 1, device="meta")
    node = graph.call_function(exir_ops.edge.aten.argmax.default, (x, 0))
    assert index_source(node) is node and not fits_int32(node)
    x.meta["val"] = torch.empty(2**31, device="meta")
    assert fits_int32(node)


def test_nothing_to_do():
    module = edge(lambda x: (x.argmax(0).to(torch.int32), x + 1))
    assert not narrowed(module).modified
