# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What crosses the boundary of a delegate has the dtype that the delegate gives it.

A value that the program quantizes is int8 in the TOSA graph as soon as it is made.
A partition that ends between the value and its quantize declares float32 and hands
out int8 codes, and the runtime reads the codes as floats.
:func:`mend_boundaries` mends the partitions; :func:`check_boundary` compares a
delegate's declared inputs and outputs with its TOSA graph and names the tensor that
differs.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from arm_ext.lowering.delegation_tags import TAG, tags_of
from executorch.backends.arm.constants import Q_OPS
from executorch.backends.arm.tosa.mapping import map_dtype, UNSUPPORTED_DTYPES
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Graph, Node
from tosa.DType import DType
from tosa.TosaGraph import TosaGraph

_NAMES = {v: k for k, v in vars(DType).items() if isinstance(v, int)}


def mend_boundaries(
    graph: Graph,
    is_supported: Callable[[Node], bool],
    reject: Callable[[Node, str], None],
) -> set[str]:
    """Have the partitions of an integer target hand out what TOSA has.

    Args:
        graph (Graph): A tagged graph; its tags are changed.
        is_supported (Callable): Whether the partitioner takes a node.
        reject (Callable): Is told of each node that is left out, and why.

    Returns:
        set[str]: The tags that no node has any more.

    """
    before = tags_of(graph.nodes)
    quantize_where_made(graph.nodes, is_supported)
    leave_int64_outside(graph.nodes, reject)
    return before - tags_of(graph.nodes)


def quantize_where_made(
    nodes: Iterable[Node], is_supported: Callable[[Node], bool]
) -> None:
    """Have each quantize join the partition that makes its value.

    Before::

        partition 1: ... -> split -> getitem  |float|  partition 2: quantize -> ...

    After::

        partition 1: ... -> split -> getitem -> quantize  |int8|  partition 2: ...

    That closes no cycle: the quantize depends on partition 1 alone, and what reads
    it depended on partition 1 before.

    Args:
        nodes (Iterable[Node]): The nodes of a graph; partitions are told by
            ``meta["delegation_tag"]``, which is changed.
        is_supported (Callable): Whether the partitioner takes a node.

    """
    for node in nodes:
        if node.target in Q_OPS:
            tag = node.all_input_nodes[0].meta.get(TAG)
            if tag not in (None, node.meta.get(TAG)) and is_supported(node):
                node.meta[TAG] = tag


def leave_int64_outside(
    nodes: Iterable[Node], reject: Callable[[Node, str], None]
) -> None:
    """Take partitions apart that would hand out an int64 tensor: TOSA has none."""
    order = list(nodes)
    bad = {n.meta[TAG] for n in order if TAG in n.meta and _hands_out_int64(n)}
    for node in order:
        if node.meta.get(TAG) in bad:
            del node.meta[TAG]
            reject(node, "Its partition would hand out an int64 tensor.")


def _hands_out_int64(node: Node) -> bool:
    value, tag = node.meta.get("val"), node.meta[TAG]
    is_int64 = isinstance(value, torch.Tensor) and value.dtype == torch.int64
    return is_int64 and any(user.meta.get(TAG) != tag for user in node.users)


@dataclass(frozen=True)
class Value:
    """A tensor at the boundary of a delegate, as its program declares it."""

    name: str
    dtype: torch.dtype
    shape: tuple[int | torch.SymInt, ...]

    def same_shape(self, shape: tuple[int, ...]) -> bool:
        """Whether a TOSA shape can be this one, in any order of dimensions.

        A symbolic size matches any; TOSA may hold a channels-last tensor permuted, and
        a scalar as one element.

        """
        if not self.shape:
            return shape in ((), (1,))
        sizes = [size for size in self.shape if isinstance(size, int)]
        if len(sizes) < len(self.shape):
            return len(shape) == len(self.shape)
        return sorted(sizes) == sorted(shape)


def declared_boundary(program: ExportedProgram) -> tuple[list[Value], list[Value]]:
    """Return the inputs and the outputs that a delegate's program declares.

    Args:
        program (ExportedProgram): The program of one partition, before the
            backend's passes change it.

    """
    kinds = {s.arg.name: s.kind for s in program.graph_signature.input_specs}
    inputs = [
        node
        for node in program.graph.nodes
        if node.op == "placeholder" and kinds[node.name] is InputKind.USER_INPUT
    ]
    (outputs,) = program.graph.output_node().args
    return list(_values(inputs)), list(_values(outputs))


def _values(nodes: Iterable[Node]) -> Iterator[Value]:
    for node in nodes:
        value = node.meta.get("val") if isinstance(node, Node) else None
        if isinstance(value, torch.Tensor):
            yield Value(node.name, value.dtype, tuple(value.shape))


def check_boundary(
    declared: tuple[list[Value], list[Value]], flatbuffer: bytes
) -> None:
    """Raise unless a TOSA graph has the boundary that its program declares.

    Args:
        declared (tuple): What :func:`declared_boundary` returned.
        flatbuffer (bytes): The serialized TOSA graph.

    Raises:
        RuntimeError: A dtype, a shape or the number of tensors differs; the message
            names the first tensor.

    """
    block = TosaGraph.GetRootAs(flatbuffer, 0).Regions(0).Blocks(0)
    tensors = {
        tensor.Name(): tensor
        for tensor in map(block.Tensors, range(block.TensorsLength()))
    }
    sides = (
        ("input", declared[0], map(block.Inputs, range(block.InputsLength()))),
        ("output", declared[1], map(block.Outputs, range(block.OutputsLength()))),
    )
    for side, values, names in sides:
        found = [tensors[name] for name in names]
        if len(found) != len(values):
            raise RuntimeError(
                f"the delegate declares {len(values)} {side}s, but its TOSA graph "
                f"has {len(found)}"
            )
        for value, tensor in zip(values, found):
            shape = tuple(map(tensor.Shape, range(tensor.ShapeLength())))
            same_dtype = (
                value.dtype not in UNSUPPORTED_DTYPES
                and map_dtype(value.dtype) == tensor.Type()
            )
            if not same_dtype or not value.same_shape(shape):
                raise RuntimeError(
                    f"the delegate declares its {side} {value.name!r} as "
                    f"{value.dtype} {list(value.shape)}, but its TOSA graph has "
                    f"{_NAMES[tensor.Type()]} {list(shape)} there"
                )
