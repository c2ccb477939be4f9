# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The constants of an unlifted graph module: their values, and constants added."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch._guards import detect_fake_mode
from torch.fx import GraphModule, Node

from .constant_evaluator import ConstantEvaluator, module_constant


class ModuleConstants(ConstantEvaluator):
    """Reads the constants of a graph module, adds some and removes unused ones.

    Args:
        graph_module (GraphModule): An ATen graph whose constants are ``get_attr``
            nodes. It is changed.
        prefix (str): First part of the names of added buffers.

    """

    def __init__(self, graph_module: GraphModule, prefix: str) -> None:
        super().__init__(lambda node: module_constant(graph_module, node))
        self._module = graph_module
        self._prefix = prefix
        self._added: list[Node] = []

    def add(self, value: torch.Tensor) -> Node:
        """Return a ``get_attr`` node of a tensor, in front of all ops."""
        graph, number = self._module.graph, 0
        while hasattr(self._module, name := f"{self._prefix}_{number}"):
            number += 1
        self._module.register_buffer(name, value.contiguous(), persistent=False)
        first = next(node for node in graph.nodes if node.op != "placeholder")
        with graph.inserting_before(first):
            constant = graph.get_attr(name)
        mode = detect_fake_mode([node.meta.get("val") for node in graph.nodes])
        assert mode is not None, "the graph was not exported: it has no fake tensors"
        constant.meta["val"] = mode.from_tensor(value, static_shapes=True)
        self._added.append(constant)
        return constant

    def remove_dead(self, nodes: Iterable[Node]) -> None:
        """Remove those of ``nodes`` that nobody uses, and what only they used."""
        for node in nodes:
            if node.users or node._erased or node.op == "placeholder":
                continue
            sources = node.all_input_nodes
            node.graph.erase_node(node)
            self.remove_dead(sources)

    def remove_unused(self) -> None:
        """Remove the added constants that nobody uses."""
        for node in self._added:
            if not node.users:
                node.graph.erase_node(node)
                delattr(self._module, str(node.target))
