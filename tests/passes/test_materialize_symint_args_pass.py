# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""MaterializeSymIntArgsPass makes a graph with symbolic arguments run."""

import pytest
import torch
from arm_ext.passes.materialize_symint_args_pass import MaterializeSymIntArgsPass
from torch.export import Dim, export
from torch.fx import GraphModule


def exported(function, *args, shapes):
    class Module(torch.nn.Module):
        def forward(self, *args):
            return function(*args)

    program = export(Module(), args, dynamic_shapes=(shapes,))
    return program.module(check_guards=False)


def with_raw_sizes(module: GraphModule) -> GraphModule:
    """Replace the size nodes by their symbols, as a retracing pass does."""
    for graph_module in module.modules():
        if not isinstance(graph_module, GraphModule):
            continue
        for node in reversed(graph_module.graph.nodes):
            if isinstance(node.meta.get("val"), torch.SymInt) and node.users:
                for user in list(node.users):
                    if not isinstance(user.meta.get("val"), torch.SymInt):
                        user.args = torch.fx.node.map_aggregate(
                            user.args,
                            lambda arg, node=node: (
                                node.meta["val"] if arg is node else arg
                            ),
                        )
        graph_module.graph.eliminate_dead_code()
        graph_module.recompile()
    return module


def materialize(module):
    return MaterializeSymIntArgsPass(tfa_pass=True)(module)


def size_nodes(module):
    return module.graph.find_nodes(
        op="call_function", target=torch.ops.aten.sym_size.int
    )


@pytest.mark.parametrize(
    "function",
    (
        lambda x, y: x.reshape(x.shape[0], 2, 4),
        lambda x, y: x.reshape(x.shape[0] * 2, -1),
        lambda x, y: x.reshape(x.shape[0] * y.shape[0] // y.shape[0], 8),
        lambda x, y: x.new_zeros(x.shape[0] + y.shape[0], y.shape[0] // 2),
        lambda x, y: (x.reshape(x.shape[0], 4, 2), y.expand(3, y.shape[0], 8)),
    ),
)
def test_the_graph_runs_with_other_sizes(function):
    x, y = torch.randn(4, 8), torch.randn(6, 8)
    shapes = ({0: Dim("a", min=2, max=64)}, {0: Dim("b", min=4, max=64)})
    module = with_raw_sizes(exported(function, x, y, shapes=shapes))
    with pytest.raises(NameError):
        module(x, y)
    result = materialize(module)
    assert result.modified
    for args in ((x, y), (torch.randn(3, 8), torch.randn(7, 8))):
        got, want = result.graph_module(*args), function(*args)
        torch.testing.assert_close(got, want, rtol=0, atol=0)


def test_a_size_is_read_once_and_from_the_input():
    def function(x):
        y = torch.relu(x).reshape(x.shape[0], 2, 4)
        return y.reshape(x.shape[0], 8)

    x = torch.randn(4, 8)
    module = with_raw_sizes(exported(function, x, shapes=({0: Dim("a", min=2)},)))
    result = materialize(module).graph_module
    (size,) = size_nodes(result)
    assert size.args[0].op == "placeholder"
    assert isinstance(size.meta["val"], torch.SymInt)


def test_a_multiple_of_a_dimension_is_divided():
    def function(x):
        return x.new_zeros(x.shape[0] // 2)

    x = torch.randn(6)
    shapes = ({0: 2 * Dim("half", min=2, max=32)},)
    module = with_raw_sizes(exported(function, x, shapes=shapes))
    assert materialize(module).graph_module(torch.randn(8)).shape == (4,)


def test_data_dependent_sizes_are_read_after_their_producer():
    def function(x):
        y = torch.nonzero(x)
        return y.expand(2, y.shape[0], y.shape[1])

    x = torch.tensor([0.0, 1.0, 2.0])
    module = with_raw_sizes(exported(function, x, shapes=(None,)))
    result = materialize(module).graph_module
    assert result(torch.ones(3)).shape == (2, 3, 1)


def test_branches_read_the_sizes_of_their_own_inputs():
    def function(x):
        def reshaped(x):
            return (x + 1).reshape(x.shape[0], 2, 4)

        def viewed(x):
            return (x - 1).reshape(x.shape[0], 2, 4)

        return torch.cond(x.sum() > 0, reshaped, viewed, (x,))

    x = torch.ones(4, 8)
    module = with_raw_sizes(exported(function, x, shapes=({0: Dim("a", min=2)},)))
    result = materialize(module).graph_module
    for value in (torch.ones(5, 8), -torch.ones(5, 8)):
        assert torch.equal(result(value), function(value))


def test_static_graphs_are_left_alone():
    x = torch.randn(4, 8)
    module = exported(lambda x: x.reshape(4, 2, 4), x, shapes=(None,))
    code = module.code
    result = materialize(module)
    assert not result.modified
    assert result.graph_module is module
    assert module.code == code


def test_a_size_that_no_input_determines_is_named():
    x = torch.randn(4, 8)
    module = with_raw_sizes(
        exported(
            lambda x: x.reshape(x.shape[0], 2, 4), x, shapes=({0: Dim("a", min=2)},)
        )
    )
    (placeholder,) = module.graph.find_nodes(op="placeholder")
    placeholder.meta["val"] = None
    with pytest.raises(RuntimeError, match="no input of the graph determines"):
        materialize(module)
