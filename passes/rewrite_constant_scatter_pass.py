# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from executorch.backends.arm._passes import (
    AccumulateIndexPutPass,
    ArmPass,
    InsertInt32CastsAfterInt64PlaceholdersPass,
)
from executorch.exir.pass_base import ExportPass
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule, Node
from torch.fx.node import map_aggregate
from torch.fx.passes.infra.pass_base import PassResult

from .constant_evaluator import ConstantEvaluator, module_constant
from .constant_index import IndexRefused
from .index_ops import (
    check_writes_no_place_twice,
    constant_indices,
    every_leading_dim,
    IndexOp,
    match,
    places_of,
    scatter,
    scatter_add,
    tensor_of,
    values_to_cut,
)
from .index_sources import schema_of

_aten = torch.ops.aten

_SCATTER_OPS = {
    _aten.scatter.src: scatter,
    _aten.scatter.value: scatter,
    _aten.scatter_.src: scatter,
    _aten.scatter_.value: scatter,
    _aten.scatter_add.default: scatter_add,
    _aten.scatter_add_.default: scatter_add,
}


class RewriteConstantScatterPass(ArmPass):
    """Rewrite ``scatter`` with a constant index to ``index_put``.

    The quantizer annotates ``index_put`` and not ``scatter``, so this runs on the
    ATen graph before annotation::

        i: int64[N, W] constant

        scatter(x: [N, K], 1, i, src)

    becomes::

        n: int32[N, 1] = range(N)
        i32: int32[N, W], counted from the front
        index_put(x, [n, i32], src[:N, :W])

    An index that is not constant, is out of range or selects a place twice is
    left as it is.

    """

    _passes_required_after: set[type[ExportPass]] = {
        AccumulateIndexPutPass,
        InsertInt32CastsAfterInt64PlaceholdersPass,
    }

    def call(self, graph_module: GraphModule) -> PassResult:
        constants = ConstantEvaluator(lambda node: module_constant(graph_module, node))
        modified = False
        for node in list(graph_module.graph.nodes):
            op = match(node, _SCATTER_OPS)
            if op is None or not self.allowed_to_transform(node.meta):
                continue
            try:
                args = self._check(op, constants)
            except IndexRefused:
                continue
            if args is not None:
                self._rewrite(graph_module, node, op, args)
                modified = True
        if modified:
            graph_module.graph.eliminate_dead_code()
            graph_module.recompile()
        return PassResult(graph_module, modified)

    def _check(
        self, op: IndexOp, constants: ConstantEvaluator
    ) -> tuple[Any, ...] | None:
        """Return the arguments of index_put, tensors for constants to be added."""
        values = constant_indices(op, constants)
        if not isinstance(values[0], torch.Tensor):
            return None
        places = places_of(op, values)
        check_writes_no_place_twice(op, places)
        written = op.values
        if not isinstance(written, Node):
            written = torch.tensor(written, dtype=tensor_of(op.source).dtype)
        every = cast(Sequence[torch.Tensor], every_leading_dim(op, places))
        indices = [place.to(torch.int32) for place in every]
        return (op.source, indices, written) + (True,) * op.accumulate

    def _rewrite(
        self,
        graph_module: GraphModule,
        node: Node,
        op: IndexOp,
        args: tuple[Any, ...],
    ) -> None:
        in_place = schema_of(node).is_mutable
        with node.graph.inserting_before(node):
            node.args = map_aggregate(
                args,
                lambda value: (
                    _add_constant(graph_module, node, value)
                    if isinstance(value, torch.Tensor)
                    else value
                ),
            )
            for dim, size in values_to_cut(op):
                values = cast(Node, node.args[2])
                cut = node.graph.call_function(
                    _aten.slice.Tensor, (values, dim, 0, size)
                )
                cut.meta = dict(node.meta)
                cut.meta["val"] = tensor_of(values).narrow(dim, 0, size)
                node.update_arg(2, cut)
        node.kwargs = {}
        node.target = _aten.index_put_.default if in_place else _aten.index_put.default


def _add_constant(graph_module: GraphModule, node: Node, value: torch.Tensor) -> Node:
    number = 0
    while hasattr(graph_module, name := f"_constant_index_{number}"):
        number += 1
    graph_module.register_buffer(name, value.contiguous(), persistent=False)
    constant = node.graph.get_attr(name)
    fake = tensor_of(node)
    if isinstance(fake, FakeTensor):
        constant.meta["val"] = fake.fake_mode.from_tensor(value, static_shapes=True)
    return constant
