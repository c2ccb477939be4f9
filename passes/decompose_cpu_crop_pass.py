# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast, Set, Type

from executorch.backends.arm._passes import ArmPass
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass
from torch._dispatch.python import enable_python_dispatcher
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

_PAD = exir_ops.edge.aten.constant_pad_nd.default
_SLICE = exir_ops.edge.aten.slice_copy.Tensor


class DecomposeCpuCropPass(ArmPass):
    """Slice where a constant pad with negative sizes stays on the CPU.

    PyTorch reads a negative pad as a crop; the portable kernel of
    ``constant_pad_nd`` refuses it when the program runs.

    Input graph, the pad declined by the partitioner::

        x [2, 8] -> constant_pad_nd(x, [-1, 2], v) -> [2, 9]

    Output graph::

        x [2, 8] -> slice_copy(x, dim=1, start=1, end=max) -> [2, 7]
                 -> constant_pad_nd([0, 2], v) -> [2, 9]

    Args:
        why_not (Callable): Returns why the partitioner declines a node, or None
            if it takes it.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()

    def __init__(self, why_not: Callable[[Node], str | None]) -> None:
        super().__init__()
        self._why_not = why_not

    def call(self, graph_module: GraphModule) -> PassResult:
        crops = [n for n in graph_module.graph.nodes if is_crop(n) and self._why_not(n)]
        for node in crops:
            _rewrite(node)
        if crops:
            graph_module.recompile()
        return PassResult(graph_module, bool(crops))


def is_crop(node: Node) -> bool:
    """Whether a node is a constant pad with a negative size."""
    if node.op != "call_function" or node.target != _PAD:
        return False
    sizes = cast(list[Any], node.args[1])
    return any(isinstance(size, int) and size < 0 for size in sizes)


def _rewrite(node: Node) -> None:
    value, sizes, *fill = cast(tuple[Any, ...], node.args)
    last = value.meta["val"].dim() - 1
    for pair, (before, after) in enumerate(zip(sizes[::2], sizes[1::2])):
        if before < 0 or after < 0:
            # An end counted from the back holds for a symbolic size too.
            end = after if after < 0 else sys.maxsize
            value = _insert(node, _SLICE, (value, last - pair, max(-before, 0), end))
    added = [max(size, 0) for size in sizes]
    if any(added):
        value = _insert(node, _PAD, (value, added, *fill))
    node.replace_all_uses_with(value)
    node.graph.erase_node(node)


def _insert(node: Node, target: Callable, args: tuple) -> Node:
    """Add a call before ``node`` that has the metadata of ``node``."""
    with node.graph.inserting_before(node):
        added = node.graph.call_function(target, args)
    added.meta = dict(node.meta)
    source, *rest = args
    # Symbolic sizes need the dispatcher that knows the decompositions in Python.
    with enable_python_dispatcher():
        added.meta["val"] = target(source.meta["val"], *rest)
    return added
