# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Keep an op whole only if the partitioner will take it.

``ops_to_not_decompose`` promises that every node its filter keeps is accepted
by the partitioner. A kept node that is left on the CPU often has no kernel
there: ``aten.pad`` or ``aten.selu`` exist in portable kernels only as what
they decompose into.

The promise is made before there is an edge program, so :class:`EdgeView` shows
the ATen program as the partitioner will see it, and :class:`KeepWhatIsTaken`
asks the partitioner's own support chain about the node in that view.

"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from executorch.backends.arm.common.annotation_meta import ArmAnnotationInfo
from executorch.backends.arm.tosa.specification import TosaLoweringContext
from executorch.exir.backend.utils import WhyNoPartitionReporter
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.passes.replace_aten_with_edge_pass import (
    aten_to_edge,
    should_lower_to_edge,
)
from torch._export.passes.replace_view_ops_with_view_copy_ops_pass import (
    get_view_copy_of_view_op,
)
from torch._export.utils import _get_shape_env_from_gm
from torch.export import ExportedProgram
from torch.fx import Graph, Node
from torch.fx.passes.operator_support import OperatorSupportBase

_CAST = exir_ops.edge.dim_order_ops._to_dim_order_copy.default
_CASTS = (torch.ops.aten._to_copy.default, torch.ops.aten.to.dtype)


def edge_target(target: Any) -> Any:
    """Return the edge op that an ATen op becomes in the edge dialect.

    Views become their copying form and casts become
    ``dim_order_ops._to_dim_order_copy``; anything that is no ATen op (a
    higher-order op, ``getitem``, an edge op) is returned as it is.

    """
    if target in _CASTS:
        return _CAST
    if not should_lower_to_edge(target):
        return target
    return aten_to_edge(get_view_copy_of_view_op(target._schema) or target)


class EdgeView:
    """A copy of an ATen graph with the targets that the edge program will have.

    Names, arguments, users and metadata are those of the original, which is
    all that support checks look at. The copy is O(nodes + edges).

    Args:
        graph (Graph): An ATen graph; it is not changed.

    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._edge_nodes: dict[Node, Node] = {}
        copied = Graph()
        copied.graph_copy(graph, self._edge_nodes)
        for node in copied.nodes:
            if node.op == "call_function":
                node.target = edge_target(node.target)

    def __getitem__(self, node: Node) -> Node:
        """Return the edge node that ``node`` becomes."""
        return self._edge_nodes[node]


class KeepWhatIsTaken:
    """The filter of ``ops_to_not_decompose``: kept *and* accepted.

    Args:
        program (ExportedProgram): The ATen program the filter is for.
        tosa_spec (TosaSpecification): The partitioner's specification.
        support (Callable): Returns the partitioner's support chain for the
            program; called once, and only if a node asks for it.
        kept (Callable): The stock filter: True where the backend would keep
            the node if it can take it.
        candidates (set): The ops that ``kept`` may keep; the answer for any
            other node is stock's.

    """

    def __init__(
        self,
        program: ExportedProgram,
        tosa_spec: Any,
        support: Callable[[WhyNoPartitionReporter], OperatorSupportBase],
        kept: Callable[[Node], bool],
        candidates: set[Any],
    ) -> None:
        self._program = program
        self._tosa_spec = tosa_spec
        self._make_support = support
        self._kept = kept
        self._candidates = candidates
        self._view: EdgeView | None = None

    def __call__(self, node: Node) -> bool:
        """Return True if ``node`` is to stay whole."""
        if node.op != "call_function" or not self._kept(node):
            return False
        if node.target not in self._candidates or self.is_taken(node):
            return True
        _forget_quantization(node)
        return False

    @functools.cached_property
    def _support(self) -> OperatorSupportBase:
        return self._make_support(WhyNoPartitionReporter())

    @functools.cached_property
    def _context(self) -> TosaLoweringContext:
        # Finding the shape environment walks the graph: once, not per node.
        shape_env = _get_shape_env_from_gm(self._program.graph_module)
        return TosaLoweringContext(self._tosa_spec, shape_env)

    def is_taken(self, node: Node) -> bool:
        """Return whether the partitioner accepts the edge node of ``node``."""
        # A graph is asked about node by node: the last view is enough.
        if self._view is None or self._view.graph is not node.graph:
            self._view = EdgeView(node.graph)
        with self._context:
            return self._support.is_node_supported({}, self._view[node])


def _forget_quantization(node: Node) -> None:
    """Unmark a node that will be decomposed between its DQ and its Q.

    The mark is inherited by what the node decomposes into, whose inner values
    are not quantized: an INT-only target would take them and fail.

    """
    custom = node.meta.get("custom", {})
    if ArmAnnotationInfo.CUSTOM_META_KEY in custom:
        node.meta["custom"] = {
            key: value
            for key, value in custom.items()
            if key != ArmAnnotationInfo.CUSTOM_META_KEY
        }
