# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What a partition, cut out of a program, takes in and hands out."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from arm_ext.lowering.delegation_tags import TAG
from executorch.exir.backend.partitioner import DelegationSpec
from executorch.exir.dialects._ops import ops as exir_ops
from torch._subclasses import FakeTensor
from torch.fx import GraphModule, Node

_FULL_LIKE = exir_ops.edge.aten.full_like.default
_FULL = exir_ops.edge.aten.full.default
_COPY = exir_ops.edge.aten.copy.default
# Backends whose delegates have no input of which nothing but the shape is read.
_BACKENDS = ("TOSABackend", "VgfBackend", "EthosUBackend")


def forget_constant_inputs(partition: GraphModule) -> None:
    """Take the values off the inputs of a partition.

    A fake tensor can carry the value of a constant. What reads it is then computed
    by PyTorch when the partition is traced, which TOSA ops cannot be. Where the
    constant is an input, its value does not belong to the partition anyway.

    """
    for node in partition.graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" else None
        if isinstance(value, FakeTensor) and value.constant is not None:
            with value.fake_mode:
                node.meta["val"] = torch.empty_strided(
                    value.shape, value.stride(), dtype=value.dtype, device=value.device
                )


def unwrap_symbol(partition: GraphModule, call: Node) -> None:
    """Insert the ``getitem`` that a partition with a symbol as only output lacks.

    ExecuTorch inserts one where the only output is a tensor. Without it the users of
    a size would be given the delegate's list.

    Args:
        partition (GraphModule): The graph cut out of a program.
        call (Node): The ``call_module`` node in its place; its users are changed.

    """
    outputs = cast(Sequence[Any], partition.graph.output_node().args[0])
    if len(outputs) != 1 or not isinstance(outputs[0], Node):
        return
    value = outputs[0].meta.get("val")
    if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return
    graph = call.graph
    with graph.inserting_after(call):
        item = graph.call_function(operator.getitem, (call, 0))
    item.meta["val"] = value
    call.replace_all_uses_with(item, delete_user_cb=lambda user: user is not item)


def drop_unread_inputs(
    module: GraphModule, specs: Mapping[str, DelegationSpec]
) -> None:
    """Take away the inputs of which a partition reads the shape alone.

    The backend leaves them out of its graph, and the runtime counts the arguments:
    with one too many it reads each as the next one. Before::

        y -> |  full_like(2) -> mul(x)

    After::

        |  full(shape of y, 2) -> mul(x)

    What made ``y`` goes where nothing else uses it.

    Args:
        module (GraphModule): A graph whose nodes have the tags of their partitions.
        specs (Mapping): The partitions' tags, and how each is delegated.

    """
    tags = [tag for tag, spec in specs.items() if spec.backend_id in _BACKENDS]
    modified = [_read_no_shapes(module, tag) for tag in tags]
    if any(modified):
        module.graph.eliminate_dead_code()
        for node in module.graph.nodes:
            if node.op == "placeholder" and not node.users:
                node.meta.pop(TAG, None)  # a partition of constants alone is none
        module.recompile()


def _read_no_shapes(module: GraphModule, tag: str) -> bool:
    members = [node for node in module.graph.nodes if node.meta.get(TAG) == tag]
    read = _read_by(members, tag)
    inputs = {i for node in members for i in node.all_input_nodes} - set(members)
    if inputs <= read:
        return False
    modified = False
    for node in members:
        if _reads_shape_only(node) and node.args[0] not in read:
            _read_no_shape(node)
            modified = True
    return modified


def _read_by(members: list[Node], tag: str) -> set[Node]:
    """Return the nodes whose values, and not only shapes, a partition reads."""
    read: set[Node] = set()
    for node in reversed(members):
        if node in read or any(user.meta.get(TAG) != tag for user in node.users):
            shape_of = node.args[0] if _reads_shape_only(node) else None
            read.update(n for n in node.all_input_nodes if n is not shape_of)
    return read


def _reads_shape_only(node: Node) -> bool:
    if node.target == _FULL_LIKE:
        return all(isinstance(size, int) for size in node.meta["val"].shape)
    if node.target != _COPY:
        return False
    written, source = cast(tuple[Node, Node], node.args[:2])
    return _layout(written) == _layout(source)


def _read_no_shape(node: Node) -> None:
    if node.target == _COPY:
        node.update_arg(0, node.args[1])
        return
    value = node.meta["val"]
    node.target = _FULL
    node.args = (list(value.shape), node.args[1])
    node.kwargs = {"dtype": value.dtype}


def _layout(node: Node) -> tuple[torch.Size, torch.dtype]:
    return node.meta["val"].shape, node.meta["val"].dtype
