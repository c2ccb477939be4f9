# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

import operator
from collections.abc import Callable
from typing import Any, cast, Optional, Set, Type

import torch
from executorch.backends.arm._passes import ArmPass
from executorch.exir.pass_base import ExportPass
from torch._decomp import core_aten_decompositions
from torch._guards import detect_fake_mode
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.fx.passes.infra.pass_base import PassResult
from torch.utils._pytree import tree_leaves

Target = Any


class DecomposeCompositePass(ArmPass):
    """Decompose the ops that a quantizer does not know into such that it does.

    The edge dialect decomposes these ops too, but behind the quantizer, when what they
    are made of has no qparams.

    Input graph::

        x -> hstack([x, y]) -> square -> z

    Output graph::

        x -> cat([x, y], 1) -> pow(2) -> z

    PyTorch says itself what the ops are made of. An op is left as it is where a part
    would not be known either, if it writes to a tensor, or if its sizes are symbolic.
    ATen, before annotation.

    Args:
        is_known (Callable[[Target], bool]): Whether the quantizer knows an op.
        is_annotated (Callable[[Node], bool]): Whether it annotates a node of a known
            op, which takes float inputs, for one.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()

    def __init__(
        self,
        is_known: Callable[[Target], bool],
        is_annotated: Callable[[Node], bool],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._is_known = is_known
        self._is_annotated = is_annotated

    def call(self, graph_module: GraphModule) -> PassResult:
        found = [n for n in graph_module.graph.nodes if self._is_composite(n)]
        decomposed = [self._decompose(node) for node in found]
        modified = any(decomposed)
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)

    # Match.

    def _is_composite(self, node: Node) -> bool:
        op = node.target
        if node.op != "call_function" or not isinstance(op, OpOverload):
            return False
        if op.namespace != "aten" or op._schema.is_mutable or self._is_known(op):
            return False
        return _is_made_of_others(op) and _is_static(node)

    # Check.

    def _is_annotated_whole(self, graph: Graph) -> bool:
        """Whether the quantizer annotates all that computes floats."""
        return all(
            self._is_annotated(node)
            for node in graph.nodes
            if node.op not in ("placeholder", "output")
            and any(map(_is_float, (node, *node.all_input_nodes)))
        )

    # Rewrite.

    def _decompose(self, node: Node) -> bool:
        parts = self._trace(node)
        if parts is None or not self._is_annotated_whole(parts):
            return False
        with node.graph.inserting_before(node):
            results = _insert(parts, node)
        if isinstance(node.meta["val"], torch.Tensor):
            node.replace_all_uses_with(results)
        else:
            for taken in list(node.users):
                assert taken.target is operator.getitem
                taken.replace_all_uses_with(results[taken.args[1]])
                node.graph.erase_node(taken)
        node.graph.erase_node(node)
        return True

    def _trace(self, node: Node) -> Optional[Graph]:
        """Return the graph of what a node is made of; None where there is none."""
        op = cast(OpOverload, node.target)
        inputs = node.all_input_nodes

        def call(*values: torch.Tensor) -> Any:
            given = dict(zip(inputs, values))
            args, kwargs = map_arg((node.args, node.kwargs), given.__getitem__)
            return op(*args, **kwargs)

        table = {
            op: decompose
            for op, decompose in core_aten_decompositions().items()
            if not self._is_known(op)
        }
        values = [value.meta["val"] for value in inputs]
        try:
            with cast(FakeTensorMode, detect_fake_mode(values)), torch.no_grad():
                return make_fx(call, decomposition_table=table)(*values).graph
        except Exception:  # of any op, for any reason: it stays as it is
            return None


def _is_made_of_others(op: OpOverload) -> bool:
    if op._can_decompose():
        return True
    is_view = any(result.alias_info for result in op._schema.returns)
    return op in core_aten_decompositions() and not is_view


def _is_static(node: Node) -> bool:
    """Whether a node reads and makes tensors alone, all of static size."""
    inputs = [value.meta.get("val") for value in node.all_input_nodes]
    values = [*inputs, *tree_leaves(node.meta.get("val"))]
    return bool(inputs) and all(
        isinstance(value, torch.Tensor)
        and all(isinstance(size, int) for size in value.shape)
        for value in values
    )


def _is_float(node: Node) -> bool:
    return any(
        isinstance(value, torch.Tensor) and value.is_floating_point()
        for value in tree_leaves(node.meta.get("val"))
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
