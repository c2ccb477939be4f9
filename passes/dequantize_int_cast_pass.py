# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import math

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from .before_partition_pass import BeforePartitionPass
from .index_sources import argument, is_call, is_cast
from .integer_ranges import integer_ranges, IntegerRange
from .program_constants import ProgramConstants

_cast = exir_ops.edge.dim_order_ops._to_dim_order_copy.default
_quantize = exir_ops.edge.quantized_decomposed.quantize_per_tensor.default
_dequantize = exir_ops.edge.quantized_decomposed.dequantize_per_tensor.default

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32)


class DequantizeIntCastPass(BeforePartitionPass):
    """Read an integer that is quantized as a quantized value of scale 1.

    Input graph::

        position: int32 -> cast(float32) -> quantize(scale, zero point) -> q: int8

    Output graph::

        position: int32 -> dequantize(1.0, 0) -> quantize(scale, zero point) -> q: int8

    Cast and dequantize give the same float. An integer target has no cast to float,
    but makes a RESCALE of a dequantize and a quantize: the code is the same, or the
    next one where the integer is right between two. A bool is cast to int8 first.
    Others that read the cast keep it.

    RESCALE takes integers up to some 2**29 scales; one that may be larger stays.

    Edge dialect, top-level graph, before partitioning, behind ``NarrowInt64Pass``.

    """

    _constants: ProgramConstants

    def call(self, graph_module: GraphModule) -> PassResult:
        graph = graph_module.graph
        casts = [n for n in graph.nodes if self._is_cast_on_the_cpu(n)]
        if not casts:
            return PassResult(graph_module, False)
        ranges = integer_ranges(graph_module, self._known_values)
        rewritten = [
            self._rewrite(cast, ranges[cast.all_input_nodes[0]]) for cast in casts
        ]
        modified = any(rewritten)
        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)

    # Match.

    def _is_cast_on_the_cpu(self, node: Node) -> bool:
        return (
            is_cast(node, torch.float32)
            and node.all_input_nodes[0].meta["val"].dtype in (*_INTEGERS, torch.bool)
            and any(is_call(user, (_quantize,)) for user in node.users)
            and self._why_not(node) is not None
        )

    # Check.

    def _known_values(self, node: Node) -> torch.Tensor | None:
        is_constant = self._constants.is_constant(node)
        return self._constants.value(node) if is_constant else None

    def _is_rescaled(self, quantize: Node, values: IntegerRange) -> bool:
        """Whether a RESCALE takes the values, and a delegate what it makes."""
        _, exponent = math.frexp(1.0 / float(argument(quantize, "scale")))
        limit = 2 ** (30 - exponent) if exponent <= 29 else 0
        readers = [r for dequantize in quantize.users for r in dequantize.users]
        return max(-values.lo, values.hi) < limit and any(
            reader.op != "output" and self._why_not(reader) is None
            for reader in readers
        )

    # Rewrite.

    def _rewrite(self, cast: Node, values: IntegerRange) -> bool:
        rescaled = [
            user
            for user in cast.users
            if is_call(user, (_quantize,)) and self._is_rescaled(user, values)
        ]
        source = self._integer_of(cast) if rescaled else None
        if source is None:
            return False
        for quantize in rescaled:
            quantize.replace_input_with(cast, _dequantized(source, cast, quantize))
        if not cast.users:
            cast.graph.erase_node(cast)
        return True

    def _integer_of(self, cast: Node) -> Node | None:
        """Return what is cast, as int8 if it is a bool; None if that is refused."""
        (source,) = cast.all_input_nodes
        if source.meta["val"].dtype != torch.bool:
            return source
        with cast.graph.inserting_before(cast):
            integer = cast.graph.call_function(
                _cast, (source,), {**cast.kwargs, "dtype": torch.int8}
            )
        integer.meta = {**cast.meta, "val": cast.meta["val"].to(torch.int8)}
        if self._why_not(integer) is None:
            return integer
        cast.graph.erase_node(integer)
        return None


def _dequantized(source: Node, cast: Node, quantize: Node) -> Node:
    """Return a dequantize of its own for one quantize: it is in its delegate."""
    dtype = source.meta["val"].dtype
    limits = torch.iinfo(dtype)
    with cast.graph.inserting_before(quantize):
        dequantize = cast.graph.call_function(
            _dequantize, (source, 1.0, 0, limits.min, limits.max, dtype), {}
        )
    dequantize.meta = dict(cast.meta)
    return dequantize
