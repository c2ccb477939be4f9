# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import sympy
import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import GraphModule, Node
from torch.fx.node import map_aggregate, map_arg
from torch.fx.passes.infra.pass_base import PassResult

from .before_partition_pass import BeforePartitionPass
from .constant_evaluator import MutableConstant, NotConstant
from .constant_index import IndexRefused
from .index_ops import (
    check_writes_no_place_twice,
    constant_indices,
    every_leading_dim,
    IndexOp,
    match,
    places_of,
    tensor_of,
    values_to_cut,
    writes_no_place_twice,
)
from .module_constants import ModuleConstants
from .program_constants import ProgramConstants
from .specialize_symbols import specialize

# Meta key of a node that must stay on the CPU; the value is the reason.
CONSTANT_INDEX_REJECT_KEY = "arm_constant_index_reject"

_edge = exir_ops.edge.aten


class NarrowConstantIndexPass(BeforePartitionPass):
    """Give index ops an int32 copy of their constant int64 index.

    TOSA indexes with int32 and knows neither negative indices nor the
    dimensions that PyTorch skips. The constant, however it is computed, is
    evaluated, checked against the dimension that it indexes, counted from the
    front, and added to the program under a new name; the op becomes one that the
    backend lowers with int32. The old constant stays for whoever else uses it.

    Reads become ``index_select`` where one rank-1 index remains, otherwise
    ``index``::

        i: int64[W] constant          i32: int32[W] constant
        |                             |
        v                             v
        index(x, [None, i])    ->     index_select(x, 1, i32)

        gather(x, 1, i)        ->     index(x, [range(N) as [N, 1], i32])

    Writes become ``index_put``, if no place is written twice::

        scatter(x, 1, i, src)  ->     index_put(x, [range(N) as [N, 1], i32], src)

    A mask selects a number of places that is known now, so the symbol that stood
    for this size is replaced in the whole graph.

    An op whose index is refused, or whose rewritten form the partitioner does
    not take, is left as it was, with the reason in
    ``node.meta["arm_constant_index_reject"]``.

    Edge dialect, top-level graph, before partitioning.

    """

    _constants: ProgramConstants | ModuleConstants

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        refused: dict[Node, str] = {}
        for node in list(graph_module.graph.nodes):
            if node._erased:
                continue
            node.meta.pop(CONSTANT_INDEX_REJECT_KEY, None)
            if (op := match(node)) is None:
                continue
            try:
                if (call := self._check(node, op)) is None:
                    continue
                self._rewrite(node, op, *call)
            except IndexRefused as error:
                self._widen(node, op)
                refused[node] = str(error)
            self._constants.remove_dead(index for index in op.indices if index)
            modified = True
        self._constants.remove_unused()
        for node, reason in refused.items():
            self._keep_on_cpu(node, reason)
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)

    # Check: what the op becomes, or the reason why it may not.

    def _check(self, node: Node, op: IndexOp) -> tuple[Any, tuple[Any, ...]] | None:
        """Return target and arguments, tensors for constants to be added."""
        values = constant_indices(op, self._constants)
        if not any(isinstance(value, torch.Tensor) for value in values):
            return None
        places = places_of(op, values)
        if self._is_fine_as_it_is(node, op, values, places):
            return None
        return self._write(op, places) if op.is_write else self._read(op, places)

    def _is_fine_as_it_is(
        self, node: Node, op: IndexOp, values: Sequence[Any], places: Sequence[Any]
    ) -> bool:
        """Whether the backend takes the op and lowers it right without us."""
        indices = [index for index in op.indices if index is not None]
        if any(tensor_of(index).dtype != torch.int32 for index in indices):
            return False
        if any(isinstance(v, torch.Tensor) and bool((v < 0).any()) for v in values):
            return False
        if op.is_write and not writes_no_place_twice(op, places):
            return False
        return self._why_not(node) is None

    def _read(self, op: IndexOp, places: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
        given = [place for place in places if place is not None]
        if len(given) == 1 and tensor_of(given[0]).dim() == 1:
            dim = len(places) - 1
            return _edge.index_select.default, (op.source, dim, given[0])
        return _edge.index.Tensor, (op.source, every_leading_dim(op, places))

    def _write(self, op: IndexOp, places: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
        check_writes_no_place_twice(op, places)
        values = op.values
        if not isinstance(values, Node):
            values = torch.tensor(values, dtype=tensor_of(op.source).dtype)
        args = (op.source, every_leading_dim(op, places), values)
        return _edge.index_put.default, args + (True,) * op.accumulate

    # Rewrite: change the call, and change it back if the partitioner declines.

    def _rewrite(
        self, node: Node, op: IndexOp, target: Any, args: tuple[Any, ...]
    ) -> None:
        before = node.target, node.args, node.kwargs, node.meta["val"]
        node.target, node.kwargs = target, {}
        node.args = map_aggregate(args, self._as_node)
        cuts = self._cut_values(node, op)
        if not op.is_write:
            node.meta["val"] = target(*map_arg(node.args, tensor_of))
        for changed in (*cuts, node):
            if reason := self._why_not(changed):
                node.target, node.args, node.kwargs, node.meta["val"] = before
                for cut in reversed(cuts):
                    node.graph.erase_node(cut)
                raise IndexRefused(reason)
        specialize(node.graph, _sizes_of_a_mask(before[-1], node.meta["val"]))

    def _cut_values(self, node: Node, op: IndexOp) -> list[Node]:
        """Cut the values of a scatter to the shape of its index."""
        cuts: list[Node] = []
        for dim, size in values_to_cut(op):
            values = cast(Node, node.args[2])
            with node.graph.inserting_before(node):
                cut = node.graph.call_function(
                    _edge.slice_copy.Tensor, (values, dim, 0, size)
                )
            cut.meta = dict(values.meta)
            cut.meta["val"] = tensor_of(values).narrow(dim, 0, size).contiguous()
            node.update_arg(2, cut)
            cuts.append(cut)
        return cuts

    def _as_node(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if value.dtype == torch.int64:
            value = value.to(torch.int32)
        return self._constants.add(value)

    # Refuse: what stays on the CPU must run there.

    def _widen(self, node: Node, op: IndexOp) -> None:
        """Give gather and scatter int64 again: their CPU kernels take no int32.

        Annotation for quantization casts every int64 constant to int32.

        """
        if op.dim is None or tensor_of(op.index).dtype == torch.int64:
            return
        try:
            index = self._constants.value(op.index)
        except NotConstant:
            return
        node.replace_input_with(op.index, self._constants.add(index.to(torch.int64)))

    def _keep_on_cpu(self, node: Node, reason: str) -> None:
        """Mark a node, and with it what computes its index and nothing else.

        A delegate of such nodes alone would hold constants only.

        """
        node.meta[CONSTANT_INDEX_REJECT_KEY] = reason
        op = match(node)
        for index in node.all_input_nodes if op is None else op.indices:
            if (
                index is not None
                and index.op == "call_function"
                and self._is_constant(index)
                and all(CONSTANT_INDEX_REJECT_KEY in user.meta for user in index.users)
            ):
                why = f"it computes an index of {node.name}: {reason}"
                self._keep_on_cpu(index, why)

    def _is_constant(self, node: Node) -> bool:
        """Whether a node depends on constants and buffers only."""
        try:
            self._constants.value(node)
        except MutableConstant:
            return True
        except NotConstant:
            return False
        return True


def _sizes_of_a_mask(
    symbolic: torch.Tensor, static: torch.Tensor
) -> dict[sympy.Symbol, int]:
    """Return the value of each symbol that stood for the size of a mask."""
    return {
        size.node.expr: known
        for size, known in zip(cast(tuple[Any, ...], symbolic.shape), static.shape)
        if isinstance(size, torch.SymInt)
    }
