# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Keep the delegation tags of a program, its branches and loop bodies whole.

A partitioner tells which nodes go to a delegate by ``meta["delegation_tag"]``, in the
graph of a program and in those of its branches and loop bodies. The next partitioner
may give the same tags, so nothing of the last one's may be left.

"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator

from torch.fx import GraphModule, Node

TAG = "delegation_tag"


def named_bodies(module: GraphModule) -> Iterator[tuple[str, GraphModule]]:
    """Yield the branches and loop bodies that a graph calls, with their names.

    Partitions and delegates, which are modules of their own, are left out.

    """
    for node in module.graph.nodes:
        if node.op == "get_attr":
            body = getattr(module, node.target, None)
            if isinstance(body, GraphModule):
                yield node.target, body


def control_flow_bodies(module: GraphModule) -> Iterator[GraphModule]:
    """Yield the modules of branches and loop bodies, nested ones included."""
    for _, body in named_bodies(module):
        yield body
        yield from control_flow_bodies(body)


def tags_of(nodes: Iterable[Node]) -> set[str]:
    """Return the tags that nodes have."""
    return {node.meta[TAG] for node in nodes if TAG in node.meta}


def clear_tags_in_bodies(module: GraphModule) -> None:
    """Take the tags off the nodes of branches and loop bodies."""
    for body in control_flow_bodies(module):
        for node in body.graph.nodes:
            node.meta.pop(TAG, None)


def tag_with_producer(module: GraphModule) -> None:
    """Tag each ``getitem`` as the op whose result it takes apart.

    Before::

        partition 1: ... -> split   |list|   getitem -> ...

    After::

        partition 1: ... -> split -> getitem   |tensor|   ...

    A delegate hands out tensors, never a list of them. That closes no cycle: the
    ``getitem`` depends on the op alone.

    """
    for graph_module in (module, *control_flow_bodies(module)):
        for node in graph_module.graph.nodes:
            if node.target is operator.getitem and isinstance(node.args[0], Node):
                _take_tag(node, node.args[0].meta.get(TAG))


def _take_tag(node: Node, tag: str | None) -> None:
    if tag is not None:
        node.meta[TAG] = tag
    else:
        node.meta.pop(TAG, None)


def in_order(tags: dict[str, object]) -> dict[str, object]:
    """Return the same tags in the order in which they were numbered."""
    return {tag: tags[tag] for tag in sorted(tags, key=lambda tag: (len(tag), tag))}
