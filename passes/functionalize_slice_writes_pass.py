# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast, Set, Type

import torch
from executorch.backends.arm._passes import ArmPass
from executorch.exir.pass_base import ExportPass
from torch._ops import OpOverload
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

_aten = torch.ops.aten
_SCATTERS = {
    _aten.slice.Tensor: _aten.slice_scatter.default,
    _aten.select.int: _aten.select_scatter.default,
}


class FunctionalizeSliceWritesPass(ArmPass):
    """Write slices of a tensor without changing it in place.

    ``y[:, :4] = a`` is exported as a ``copy_`` into a slice of ``y``. A quantizer puts
    Q/DQ between the two: the slice is then one of a copy, and ``y`` is never written.

    Input graph::

        y -> slice(1, 0, 4) -> copy_(a)
        y -> user

    Output graph::

        slice_scatter(y, a, 1, 0, 4) -> user

    ``select`` likewise, and slices of slices. An input of the model that is changed,
    and a tensor that another view shows to somebody after the write, stay.

    ATen, before annotation.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()

    def call(self, graph_module: GraphModule) -> PassResult:
        graph = graph_module.graph
        writes = [n for n in graph.nodes if n.target == _aten.copy_.default]
        rewritten = [_rewrite(write) for write in writes if _why_not(write) is None]
        modified = any(rewritten)
        if modified:
            graph.eliminate_dead_code()
            graph_module.recompile()
        return PassResult(graph_module, modified)


# Match: the slices from the tensor that is written to the place of the write.


def _slices(write: Node) -> list[Node]:
    found: list[Node] = []
    node = write.all_input_nodes[0]
    while node.op == "call_function" and node.target in _SCATTERS:
        found.insert(0, node)
        node = node.all_input_nodes[0]
    return found


# Check.


def _why_not(write: Node) -> str | None:
    """Return why a write stays as it is; None if it can be rewritten."""
    slices = _slices(write)
    if not slices:
        return "it writes all of a tensor"
    written = slices[0].all_input_nodes[0]
    if written.op != "call_function" or _may_be_view(written):
        return f"{written.name} may be seen through another tensor"
    for view in _views(written):
        if view < write and any(user > write for user in view.users):
            return f"{view.name} shows the write to its users"
    return "its result is used" if write.users else None


def _views(node: Node) -> Iterator[Node]:
    """Yield what may share memory with a node, and comes from it."""
    for user in node.users:
        if user.op == "call_function" and _may_be_view(user):
            yield user
            yield from _views(user)


def _may_be_view(node: Node) -> bool:
    """Whether an output of a node may share memory with an input."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return True
    returns = node.target._schema.returns
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(
        node.target.name(), "CompositeImplicitAutograd"
    )
    return composite or any(value.alias_info is not None for value in returns)


# Rewrite.


def _rewrite(write: Node) -> bool:
    value = cast(Node, write.args[1])
    slices = _slices(write)
    written = slices[0].all_input_nodes[0]
    later = [user for user in written.users if user > write]
    with write.graph.inserting_before(write):
        value = _shaped_like(slices[-1], value, write)
        for place in reversed(slices):
            source, *where = cast(tuple[Any, ...], place.args)
            op = _SCATTERS[cast(OpOverload, place.target)]
            value = _call(write, op, (source, value, *where), source.meta["val"])
    for user in later:
        user.replace_input_with(written, value)
    write.graph.erase_node(write)
    return True


def _shaped_like(place: Node, value: Node, write: Node) -> Node:
    """Return ``value`` as ``copy_`` converts it: broadcast, and cast."""
    wanted, given = place.meta["val"], value.meta["val"]
    if given.dtype != wanted.dtype:
        cast = _aten.to.dtype, (value, wanted.dtype)
        value = _call(write, *cast, given.to(wanted.dtype))
    if given.shape != wanted.shape:
        size = list(wanted.shape)
        value = _call(write, _aten.expand.default, (value, size), wanted)
    return value


def _call(write: Node, op, args: tuple, value: torch.Tensor) -> Node:
    node = write.graph.call_function(op, args)
    node.meta = {**write.meta, "val": value}
    return node
