# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg
from torch.fx.passes.infra.pass_base import PassResult

from .before_partition_pass import BeforePartitionPass
from .constant_evaluator import NotConstant
from .module_constants import ModuleConstants
from .program_constants import ProgramConstants

_aten = exir_ops.edge.aten
_cast = exir_ops.edge.dim_order_ops._to_dim_order_copy.default

# Every value of these is one of float32.
_WITHIN_FLOAT32 = (
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int16,
    torch.int8,
    torch.uint8,
)

# Of float32 operands, the float64 result rounded to float32 is the float32 result:
# 53 bits are at least twice 24 and 2 more (Figueroa, "When is double rounding
# innocuous?").
ROUNDED_ONCE = (
    _aten.add.Tensor,
    _aten.sub.Tensor,
    _aten.mul.Tensor,
    _aten.div.Tensor,
    _aten.sqrt.default,
)

# These commute with rounding: they move values, change signs, or choose by order.
NOT_ROUNDED = (
    _aten.abs.default,
    _aten.alias_copy.default,
    _aten.cat.default,
    _aten.expand_copy.default,
    _aten.maximum.default,
    _aten.minimum.default,
    _aten.neg.default,
    _aten.permute_copy.default,
    _aten.relu.default,
    _aten.repeat.default,
    _aten.select_copy.int,
    _aten.slice_copy.Tensor,
    _aten.squeeze_copy.dims,
    _aten.unsqueeze_copy.default,
    _aten.view_copy.default,
)


class NarrowFloat64Pass(BeforePartitionPass):
    """Compute in float32 what is a float64 only between casts.

    Input graph::

        x float32 -> cast(float64) -> unsqueeze -> mul(f float64) -> cast(float32) -> y

    Output graph, if every value of the constant ``f`` is one of float32::

        x float32 -> unsqueeze -> mul(f float32) -> y

    It is the same number: the operands are float32 values, one op rounds them, and
    its float64 result rounded to float32 is its float32 result. A second op would
    see the float64 digits, so that more than one that rounds stays, as does a
    constant that float32 has not. Ops that move values may be anywhere between.

    Division and square root are as exact then as the backend's are in float32. What
    the partitioner does not take in float32 is put back. Edge dialect,
    top-level graph, before partitioning.

    """

    _constants: ProgramConstants | ModuleConstants

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for node in list(graph_module.graph.nodes):
            if not node._erased and is_narrowing(node) and self._is_one(node.args[0]):
                modified |= self._rewrite(node)
        self._constants.remove_unused()
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)

    # Check.

    def _is_one(self, node: Node) -> bool:
        """Whether a float64, rounded to float32, is what float32 ops compute."""
        if self._is_exact(node):
            return True
        if _is_call(node, NOT_ROUNDED):
            return all(self._is_one(source) for source in node.all_input_nodes)
        if not _is_call(node, ROUNDED_ONCE) or node.kwargs:
            return False
        return all(isinstance(a, Node) and self._is_exact(a) for a in node.args)

    def _is_exact(self, node: Node) -> bool:
        """Whether each element of a float64 is a float32."""
        if is_widening(node):
            return True
        if _is_call(node, NOT_ROUNDED):
            return all(self._is_exact(source) for source in node.all_input_nodes)
        value = self._value(node)
        return value is not None and bool(_holds(value).all())

    def _value(self, node: Node) -> torch.Tensor | None:
        try:
            return self._constants.value(node)
        except NotConstant:
            return None

    # Rewrite.

    def _rewrite(self, cast: Node) -> bool:
        added: list[Node] = []
        source = cast.all_input_nodes[0]
        with cast.graph.inserting_before(cast):
            # A part that several read is made once.
            narrow = functools.lru_cache(maxsize=None)(
                lambda node: self._narrow(node, narrow, added)
            )
            result = narrow(source)
        if any(self._why_not(node) is not None for node in added):
            for node in reversed(added):
                cast.graph.erase_node(node)
            return False
        cast.replace_all_uses_with(result)
        cast.graph.erase_node(cast)
        self._constants.remove_dead([source])
        return True

    def _narrow(
        self, node: Node, narrow: Callable[[Node], Node], added: list[Node]
    ) -> Node:
        """Return a node in float32 for one in float64; note what was added."""
        graph = node.graph
        if is_widening(node):
            (source,) = node.all_input_nodes
            if source.meta["val"].dtype == torch.float32:
                return source
            new = graph.call_function(_cast, (source,), {"dtype": torch.float32})
        elif (value := self._value(node)) is not None:
            return self._constants.add(value.to(torch.float32))
        else:
            args = map_arg(node.args, narrow)
            new = graph.create_node("call_function", node.target, args, node.kwargs)
        new.meta = {**node.meta, "val": node.meta["val"].to(torch.float32)}
        added.append(new)
        return new


def is_narrowing(node: Node) -> bool:
    """Whether a node is a cast from float64 to float32."""
    return _is_cast(node, torch.float32) and (
        node.all_input_nodes[0].meta["val"].dtype == torch.float64
    )


def is_widening(node: Node) -> bool:
    """Whether a node is a cast to float64 of values that float32 has."""
    return _is_cast(node, torch.float64) and (
        node.all_input_nodes[0].meta["val"].dtype in _WITHIN_FLOAT32
    )


def _is_cast(node: Node, dtype: torch.dtype) -> bool:
    return _is_call(node, (_cast,)) and node.kwargs.get("dtype") == dtype


def _is_call(node: Node, targets: tuple[Any, ...]) -> bool:
    return node.op == "call_function" and node.target in targets


def _holds(value: torch.Tensor) -> torch.Tensor:
    rounded = value.to(torch.float32).to(torch.float64)
    return (rounded == value) | value.isnan()
