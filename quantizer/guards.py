# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Take the input guards of ``ExportedProgram.module()`` out and put them back.

The guards are one ``call_module`` node that takes all placeholders, in order,
and has no users; its module raises if the inputs do not fit the program. An
``ExportPass`` cannot interpret a ``call_module`` node.

"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.export._unlift import GuardsFn
from torch.fx import GraphModule, Node


@dataclass(frozen=True)
class Guards:
    """A guards node that was taken out of its graph."""

    target: str
    module: torch.nn.Module
    meta: dict


def guards_node(graph_module: GraphModule) -> Node | None:
    """Return the node that checks the inputs of an exported module, or None."""
    for node in graph_module.graph.find_nodes(op="call_module", target="_guards_fn"):
        if isinstance(graph_module.get_submodule(node.target), GuardsFn):
            return node
    return None


def detach_guards(graph_module: GraphModule) -> Guards | None:
    """Remove the guards from a graph module and return them, None without any."""
    node = guards_node(graph_module)
    if node is None:
        return None
    name = str(node.target)
    guards = Guards(name, graph_module.get_submodule(name), node.meta)
    graph_module.graph.erase_node(node)
    graph_module.delete_submodule(guards.target)
    graph_module.recompile()
    return guards


def attach_guards(graph_module: GraphModule, guards: Guards) -> None:
    """Check the inputs of a graph module by guards made for the same inputs."""
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    graph_module.add_submodule(guards.target, guards.module)
    with graph_module.graph.inserting_after(placeholders[-1]):
        node = graph_module.graph.call_module(guards.target, tuple(placeholders))
    node.meta = dict(guards.meta)
    graph_module.recompile()


@contextmanager
def _without_guards(graph_module: GraphModule) -> Iterator[Guards | None]:
    guards = detach_guards(graph_module)
    try:
        yield guards
    finally:
        if guards is not None:
            attach_guards(graph_module, guards)


def transform_without_guards(
    transform: Callable[[GraphModule], GraphModule], graph_module: GraphModule
) -> GraphModule:
    """Return ``transform(graph_module)``, the guards kept out of its sight.

    The result checks its inputs as ``graph_module`` does, which keeps its own
    guards, also when ``transform`` raises.

    Args:
        transform (Callable): Returns a graph module with the same placeholders,
            the given one or a new one.
        graph_module (GraphModule): With or without guards.

    """
    with _without_guards(graph_module) as guards:
        result = transform(graph_module)
    if guards is not None and result is not graph_module:
        attach_guards(result, guards)
    return result
