# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

import operator
from typing import Any, cast, Set, Type

import torch
from executorch.backends.arm._passes import ArmOpTargetedPass
from executorch.exir.pass_base import ExportPass
from torch._decomp import get_decompositions
from torch._guards import detect_fake_mode
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.fx.passes.infra.pass_base import PassResult
from torch.utils._pytree import tree_leaves

_aten = torch.ops.aten


class DecomposeViewsAndJoinsPass(ArmOpTargetedPass):
    """Decompose what only moves elements into the moves that a quantizer knows.

    The edge dialect decomposes these ops too, but behind the quantizer, when what they
    are made of has no qparams.

    Input graph::

        x -> narrow(0, 1, 2) -> hstack([x, y]) -> z

    Output graph::

        x -> slice(0, 1, 3) -> cat([x, y], 1) -> z

    PyTorch says itself what an op is made of: only ops that move elements as well, so
    that one scale serves all. An op with symbolic sizes stays. ATen, before
    annotation.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()
    target_ops = (
        _aten.adjoint.default,
        _aten.atleast_1d.default,
        _aten.atleast_2d.default,
        _aten.atleast_3d.default,
        _aten.broadcast_to.default,
        _aten.channel_shuffle.default,
        _aten.column_stack.default,
        _aten.dsplit.array,
        _aten.dsplit.int,
        _aten.dstack.default,
        _aten.expand_as.default,
        _aten.fliplr.default,
        _aten.flipud.default,
        _aten.hsplit.array,
        _aten.hsplit.int,
        _aten.hstack.default,
        _aten.mT.default,
        _aten.meshgrid.default,
        _aten.meshgrid.indexing,
        _aten.narrow.default,
        _aten.numpy_T.default,
        _aten.ravel.default,
        _aten.reshape_as.default,
        _aten.rot90.default,
        _aten.swapaxes.default,
        _aten.swapdims.default,
        _aten.tensor_split.indices,
        _aten.tensor_split.sections,
        _aten.vsplit.array,
        _aten.vsplit.int,
        _aten.vstack.default,
    )
    # The others are made of other ops by the dispatcher itself.
    decompositions: Any = get_decompositions(
        [_aten.channel_shuffle.default, _aten.rot90.default]
    )

    def call(self, graph_module: GraphModule) -> PassResult:
        found = [
            node
            for op in self.target_ops
            for node in graph_module.graph.find_nodes(op="call_function", target=op)
            if _is_static(node)
        ]
        for node in found:
            self._decompose(node)
        if found:
            graph_module.recompile()
        return PassResult(graph_module, bool(found))

    def _decompose(self, node: Node) -> None:
        with node.graph.inserting_before(node):
            results = _insert(self._trace(node), node)
        if isinstance(node.meta["val"], torch.Tensor):
            node.replace_all_uses_with(results)
        else:
            for taken in list(node.users):
                assert taken.target is operator.getitem
                taken.replace_all_uses_with(results[taken.args[1]])
                node.graph.erase_node(taken)
        node.graph.erase_node(node)

    def _trace(self, node: Node) -> Graph:
        """Return the graph of what a node is made of."""
        op = cast(OpOverload, node.target)
        inputs = node.all_input_nodes

        def call(*values: torch.Tensor) -> Any:
            given = dict(zip(inputs, values))
            args, kwargs = map_arg((node.args, node.kwargs), given.__getitem__)
            return op(*args, **kwargs)

        values = [value.meta["val"] for value in inputs]
        with cast(FakeTensorMode, detect_fake_mode(values)), torch.no_grad():
            return make_fx(call, self.decompositions)(*values).graph


def _is_static(node: Node) -> bool:
    """Whether all sizes are known of what a node reads and makes."""
    values = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
    return all(
        isinstance(value, torch.Tensor)
        and all(isinstance(size, int) for size in value.shape)
        for value in tree_leaves(values)
    )


def _insert(parts: Graph, node: Node) -> Any:
    """Copy a graph to where a node is called; return what stands for its results."""
    placeholders = parts.find_nodes(op="placeholder")
    copies = dict(zip(placeholders, node.all_input_nodes, strict=True))
    for part in parts.nodes:
        if part.op == "call_function":
            copies[part] = node.graph.node_copy(part, copies.__getitem__)
            copies[part].meta = {**node.meta, "val": part.meta["val"]}
    return map_arg(parts.output_node().args[0], copies.__getitem__)
