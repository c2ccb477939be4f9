# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Replace symbolic sizes that sit in a graph's arguments by nodes."""

from typing import Any, Set, Type

import torch
from executorch.backends.arm._passes import ArmPass
from executorch.exir.pass_base import ExportPass, PassResult
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.fx.node import map_aggregate
from torch.utils import _pytree as pytree


def _symints(node: Node) -> list[torch.SymInt]:
    leaves = pytree.tree_leaves((node.args, node.kwargs))
    return [leaf for leaf in leaves if isinstance(leaf, torch.SymInt)]


def _set_symints(node: Node, sizes: dict[Any, Node | int]) -> None:
    """Replace each ``torch.SymInt`` by the node of its expression in ``sizes``."""
    node.args, node.kwargs = map_aggregate(
        (node.args, node.kwargs),
        lambda arg: sizes[arg.node.expr] if isinstance(arg, torch.SymInt) else arg,
    )


class MaterializeSymIntArgsPass(ArmPass):
    """Replace symbolic sizes in arguments by nodes that compute them.

    A pass that takes a new shape from ``tensor.data.shape`` leaves the
    ``torch.SymInt`` itself in the arguments. Later passes can live with that,
    but the graph module cannot run: the symbol is an undefined name in its
    code. With dynamic shapes, a module that is to be calibrated needs this pass
    after all passes that compute shapes.

    Input graph (``s0`` is a symbol, not a node)::

        %x : f32[s0, 8] = placeholder[target=x]
        %relu : f32[s0, 8] = relu(%x)
        %reshape : f32[1, 1, 4*s0, 2] = reshape(%relu, [1, 1, 4*s0, 2])

    Output graph::

        %x : f32[s0, 8] = placeholder[target=x]
        %sym_size : Sym(s0) = sym_size.int(%x, 0)
        %mul : Sym(4*s0) = mul(4, %sym_size)
        %relu : f32[s0, 8] = relu(%x)
        %reshape : f32[1, 1, 4*s0, 2] = reshape(%relu, [1, 1, %mul, 2])

    Sizes come from the placeholders and not from the tensor at hand, whose
    further user would hide a pattern (convolution + ReLU) from the quantizer.
    Graph modules nested in the module (branches, loop bodies) get their sizes
    from their own placeholders. A module without symbolic arguments is returned
    as it is.

    Raises:
        RuntimeError: A size depends on a symbol that no input determines.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for module in list(graph_module.modules()):
            if isinstance(module, GraphModule):
                modified |= self._materialize(module)
        return PassResult(graph_module, modified)

    def _materialize(self, module: GraphModule) -> bool:
        users = [node for node in module.graph.nodes if _symints(node)]
        if not users:
            return False
        # All sizes of inputs at once: the search for their sources is linear in
        # the graph.
        of_inputs = [
            value
            for user in users
            for value in _symints(user)
            if not free_unbacked_symbols(value)
        ]
        top = module.graph.find_nodes(op="placeholder")[-1].next
        sizes = self._nodes_for(module, of_inputs, before=top)
        for user in users:
            data_dependent = [
                value for value in _symints(user) if value.node.expr not in sizes
            ]
            own = self._nodes_for(module, data_dependent, before=user)
            _set_symints(user, sizes | own)
        module.recompile()
        return True

    def _nodes_for(
        self, module: GraphModule, values: list[torch.SymInt], before: Node
    ) -> dict[Any, Node | int]:
        """Return the nodes that compute ``values``, by their expressions."""
        try:
            with module.graph.inserting_before(before):
                nodes = module.graph.materialize_symints(values)
        except AssertionError as error:
            raise RuntimeError(
                f"no input of the graph determines one of the sizes {values} that a "
                f"rewritten node needs ({error}). Export the model with that "
                "dimension static, or as a dynamic dimension of its own."
            ) from error
        return {value.node.expr: node for value, node in zip(values, nodes)}
