# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from executorch.backends.arm._passes import ArmPass
from executorch.backends.transforms.utils import delete_constant_placeholder
from executorch.exir import ExportedProgram
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass
from torch._subclasses.fake_tensor import FakeTensor
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult
from torch.utils._sympy.numbers import int_oo

from .constant_evaluator import (
    ConstantEvaluator,
    MutableConstant,
    NotConstant,
    program_constant,
)
from .constant_index import (
    expand_masks,
    index_every_leading_dim,
    index_of_each_element,
    IndexRefused,
    normalize,
    selects_no_place_twice,
)
from .index_ops import IndexOp, match

logger = logging.getLogger(__name__)

# Meta key of a node that must stay on the CPU; the value is the reason.
CONSTANT_INDEX_REJECT_KEY = "arm_constant_index_reject"

_edge = exir_ops.edge.aten


@dataclass(frozen=True)
class _Rewrite:
    """The call that replaces an index op; tensors are constants to be added."""

    target: Any
    args: tuple[Any, ...]
    # Shape that the values of a write are cut to, None to take them whole.
    cut_values: tuple[int, ...] | None = None


class NarrowConstantIndexPass(ArmPass):
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

    An op whose index is refused, or whose rewritten form the partitioner does
    not take, is left as it was, with the reason in
    ``node.meta["arm_constant_index_reject"]``.

    Edge dialect, top-level graph, before partitioning. It changes the program:
    hand it a copy.

    Args:
        exported_program (ExportedProgram): The program with the values of its
            constants.
        why_not (Callable[[Node], str | None]): Returns why the partitioner does
            not take a node, or None if it does.

    """

    _passes_required_after: set[type[ExportPass]] = set()

    def __init__(
        self,
        exported_program: ExportedProgram,
        why_not: Callable[[Node], str | None],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.exported_program = exported_program
        self._why_not = why_not
        self._constants = ConstantEvaluator(
            lambda node: program_constant(exported_program, node)
        )
        self._added: dict[tuple[Any, ...], Node] = {}

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for node in list(graph_module.graph.nodes):
            node.meta.pop(CONSTANT_INDEX_REJECT_KEY, None)
            if (op := match(node)) is None:
                continue
            before = [index for index in op.indices if index is not None]
            try:
                if (rewrite := self._check(node, op)) is None:
                    continue
                self._rewrite(node, op, rewrite)
            except IndexRefused as refused:
                self._refuse(node, before, str(refused))
            else:
                self._remove_dead(before)
            modified = True
        if modified:
            self._remove_dead(list(self._added.values()))
            graph_module.recompile()
        return PassResult(graph_module, modified)

    # Check: what the op becomes, or the reason why it may not.

    def _check(self, node: Node, op: IndexOp) -> _Rewrite | None:
        values = [self._constant_or_node(index) for index in op.indices]
        if not any(isinstance(value, torch.Tensor) for value in values):
            return None
        if op.dim is not None:
            _check_fits(op, values[0])
            index = _normalize(values[0], op.shape, op.dim)
            places = index_of_each_element(op.shape, op.dim, index)
        else:
            places = self._places(op, values)
        if self._is_fine_as_it_is(node, op, values, places):
            return None
        return self._write(op, places) if op.is_write else self._read(op, places)

    def _constant_or_node(self, index: Node | None) -> torch.Tensor | Node | None:
        if index is None:
            return None
        try:
            return self._constants.value(index)
        except MutableConstant as error:
            raise IndexRefused(f"the index is not constant: {error}") from error
        except NotConstant:
            return index

    def _places(self, op: IndexOp, values: list[Any]) -> list[Any]:
        """One integer tensor, node or None for each leading dimension."""
        if not all(isinstance(value, (torch.Tensor, type(None))) for value in values):
            if any(_is_mask(value) for value in values if value is not None):
                raise IndexRefused(
                    "a mask beside an index that is computed at run time"
                )
        places = expand_masks_beside_nodes(values)
        while places and places[-1] is None:
            places.pop()
        return [
            _normalize(place, op.shape, dim)
            if isinstance(place, torch.Tensor)
            else place
            for dim, place in enumerate(places)
        ]

    def _is_fine_as_it_is(
        self, node: Node, op: IndexOp, values: list[Any], places: list[Any]
    ) -> bool:
        """Whether the backend takes the op and lowers it right without us."""
        constants = [value for value in values if isinstance(value, torch.Tensor)]
        indices = [index for index in op.indices if index is not None]
        if any(index.meta["val"].dtype != torch.int32 for index in indices):
            return False
        if any(bool((value < 0).any()) for value in constants):
            return False
        if op.is_write and not _is_unique(op, places):
            return False
        return self._why_not(node) is None

    def _read(self, op: IndexOp, places: list[Any]) -> _Rewrite:
        tensors = [place for place in places if place is not None]
        if len(tensors) == 1 and _val(tensors[0]).dim() == 1:
            dim = len(places) - 1
            return _Rewrite(
                _edge.index_select.default, (op.source, dim, tensors[0])
            )
        return _Rewrite(_edge.index.Tensor, (op.source, _every_dim(op, places)))

    def _write(self, op: IndexOp, places: list[Any]) -> _Rewrite:
        if not _is_unique(op, places):
            raise IndexRefused(
                "the index selects a place more than once, or may do so; TOSA's "
                "SCATTER takes each place once"
            )
        args = (op.source, _every_dim(op, places), op.values)
        if op.accumulate:
            args += (True,)
        if op.dim is None or not isinstance(op.values, Node):
            return _Rewrite(_edge.index_put.default, args)
        index_shape = tuple(op.indices[0].meta["val"].shape)
        cut = index_shape != tuple(op.values.meta["val"].shape)
        return _Rewrite(_edge.index_put.default, args, index_shape if cut else None)

    # Rewrite: change the call, and change it back if the partitioner declines.

    def _rewrite(self, node: Node, op: IndexOp, rewrite: _Rewrite) -> None:
        before = node.target, node.args, node.kwargs
        node.target, node.kwargs = rewrite.target, {}
        node.args = torch.fx.node.map_aggregate(rewrite.args, self._as_argument)
        if op.is_write and not isinstance(op.values, Node):
            dtype = op.source.meta["val"].dtype
            value = self._add_constant(torch.tensor(op.values, dtype=dtype))
            node.update_arg(2, value)
        cuts = self._cut(node, rewrite.cut_values)
        for changed in (*cuts, node):
            if reason := self._why_not(changed):
                node.target, node.args, node.kwargs = before
                for cut in reversed(cuts):
                    node.graph.erase_node(cut)
                raise IndexRefused(reason)
        logger.debug("%s: index narrowed to int32", node.name)

    def _cut(self, node: Node, shape: tuple[int, ...] | None) -> list[Node]:
        """Cut the values of a scatter to the shape of its index."""
        cuts: list[Node] = []
        if shape is None:
            return cuts
        for dim, size in enumerate(shape):
            values = node.args[2]
            value = values.meta["val"]
            if value.shape[dim] == size:
                continue
            with node.graph.inserting_before(node):
                cut = node.graph.call_function(
                    _edge.slice_copy.Tensor, (values, dim, 0, size)
                )
            cut.meta = dict(values.meta)
            cut.meta["val"] = value.narrow(dim, 0, size).contiguous()
            node.update_arg(2, cut)
            cuts.append(cut)
        return cuts

    def _as_argument(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return self._add_constant(value.to(torch.int32).contiguous())

    def _add_constant(self, value: torch.Tensor) -> Node:
        """Return the placeholder of a constant; equal ones share it."""
        key = (value.dtype, tuple(value.shape), value.numpy().tobytes())
        if key not in self._added:
            self._added[key] = _add_constant(self.exported_program, value)
        return self._added[key]

    def _refuse(self, node: Node, indices: list[Node], reason: str) -> None:
        """Keep the op on the CPU, and with it what computes its index."""
        node.meta[CONSTANT_INDEX_REJECT_KEY] = reason
        for index in indices:
            if index.op == "call_function" and all(
                CONSTANT_INDEX_REJECT_KEY in user.meta for user in index.users
            ):
                self._refuse(index, index.all_input_nodes, f"index of {node.name}")

    def _remove_dead(self, nodes: list[Node]) -> None:
        for node in nodes:
            if node.users or node.graph is None or node._erased:
                continue
            if node.op == "call_function":
                inputs = node.all_input_nodes
                node.graph.erase_node(node)
                self._remove_dead(inputs)
            elif node.op == "placeholder" and _is_removable(
                self.exported_program, node
            ):
                delete_constant_placeholder(self.exported_program, node)


def expand_masks_beside_nodes(values: list[Any]) -> list[Any]:
    """As ``expand_masks``, leaving nodes where they are."""
    if any(isinstance(value, Node) for value in values):
        return list(values)
    return expand_masks(values)


def _val(place: Node | torch.Tensor) -> torch.Tensor:
    return place.meta["val"] if isinstance(place, Node) else place


def _is_mask(value: Node | torch.Tensor) -> bool:
    return _val(value).dtype in (torch.bool, torch.uint8)


def _least_size(size: int | torch.SymInt) -> int:
    """The size, or the least that a symbolic one takes."""
    if isinstance(size, int):
        return size
    lower = size.node.shape_env.bound_sympy(size.node.expr).lower
    return 0 if lower in (int_oo, -int_oo) else int(lower)


def _normalize(index: torch.Tensor, shape: torch.Size, dim: int) -> torch.Tensor:
    if dim >= len(shape):
        raise IndexRefused(f"the index is of dimension {dim} of a rank-{len(shape)} tensor")
    size = shape[dim]
    return normalize(index, _least_size(size), exact=isinstance(size, int))


def _check_fits(op: IndexOp, index: torch.Tensor) -> None:
    """Refuse a gather or scatter whose index is not of the source's rank."""
    if index.dim() != len(op.shape) or index.dim() == 0:
        raise IndexRefused(
            f"the index has rank {index.dim()}, its source rank {len(op.shape)}"
        )


def _every_dim(op: IndexOp, places: list[Any]) -> list[Any]:
    if None not in places:
        return places
    if any(isinstance(place, Node) for place in places):
        raise IndexRefused("a skipped dimension beside an index computed at run time")
    for dim, place in enumerate(places):
        if place is None and not isinstance(op.shape[dim], int):
            raise IndexRefused(f"dimension {dim} is skipped and has a symbolic size")
    return index_every_leading_dim(op.shape, places)


def _is_unique(op: IndexOp, places: list[Any]) -> bool:
    shape = torch.broadcast_shapes(
        *(_val(place).shape for place in places if place is not None)
    )
    constants = [place for place in places if isinstance(place, torch.Tensor)]
    return selects_no_place_twice(constants, shape)


def _is_removable(program: ExportedProgram, node: Node) -> bool:
    signature = program.graph_signature
    if node.name in signature.inputs_to_buffers:
        name = signature.inputs_to_buffers[node.name]
        return name not in signature.buffers_to_mutate.values()
    return (
        node.name in signature.inputs_to_parameters
        or node.name in signature.inputs_to_lifted_tensor_constants
    )


def _add_constant(program: ExportedProgram, value: torch.Tensor) -> Node:
    """Add a lifted tensor constant in front of all other placeholders."""
    graph = program.graph
    taken = {node.name for node in graph.nodes} | program.constants.keys()
    taken |= program.state_dict.keys()
    number = 0
    while (name := f"constant_index_{number}") in taken:
        number += 1
    first = next(node for node in graph.nodes if node.op == "placeholder")
    with graph.inserting_before(first):
        node = graph.placeholder(name)
    node.meta["val"] = _fake_mode(graph).from_tensor(value, static_shapes=True)
    spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), name)
    program.graph_signature.input_specs.insert(0, spec)
    program.constants[name] = value
    return node


def _fake_mode(graph: torch.fx.Graph) -> Any:
    return next(
        node.meta["val"].fake_mode
        for node in graph.nodes
        if isinstance(node.meta.get("val"), FakeTensor)
    )
