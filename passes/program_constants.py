# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The constants of an exported program: their values, and constants added to it."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import torch
from executorch.backends.transforms.utils import delete_constant_placeholder
from executorch.exir import ExportedProgram
from torch._subclasses.fake_tensor import FakeTensor
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Graph, Node

from .constant_evaluator import ConstantEvaluator, program_constant


class ProgramConstants(ConstantEvaluator):
    """Reads the constants of a program, adds some and removes unused ones.

    Args:
        exported_program (ExportedProgram): The program with the values of its
            constants. It is changed.
        prefix (str): First part of the names of added constants.

    """

    def __init__(self, exported_program: ExportedProgram, prefix: str) -> None:
        super().__init__(lambda node: program_constant(exported_program, node))
        self._program = exported_program
        self._prefix = prefix
        self._added: dict[tuple[Any, ...], Node] = {}

    def is_user_input(self, node: Node) -> bool:
        return node.name in self._program.graph_signature.user_inputs

    def add(self, value: torch.Tensor) -> Node:
        """Return the placeholder of a tensor; equal tensors share one."""
        value = value.contiguous()
        key = (value.dtype, value.shape, digest(value))
        if key not in self._added or self._added[key]._erased:
            self._added[key] = _add_constant(self._program, value, self._prefix)
        return self._added[key]

    def remove_dead(self, nodes: Iterable[Node]) -> None:
        """Remove those of ``nodes`` that nobody uses, and what only they used."""
        for node in nodes:
            if node.users or node._erased:
                continue
            if node.op == "call_function":
                inputs = node.all_input_nodes
                node.graph.erase_node(node)
                self.remove_dead(inputs)
            elif node.op == "placeholder" and _is_removable(self._program, node):
                delete_constant_placeholder(self._program, node)

    def remove_unused(self) -> None:
        """Remove the added constants that nobody uses."""
        self.remove_dead(list(self._added.values()))


def digest(value: torch.Tensor) -> bytes:
    """Return what tells the bytes of contiguous tensors apart."""
    # A dimension of size 1 may have any stride, which view() minds.
    elements = value.detach().as_strided((value.numel(),), (1,))
    return sha256(elements.view(torch.uint8).numpy().data).digest()


def _is_removable(program: ExportedProgram, node: Node) -> bool:
    signature = program.graph_signature
    targets = [spec.target for spec in signature.input_specs]
    (own,) = (s.target for s in signature.input_specs if s.arg.name == node.name)
    if targets.count(own) > 1:
        return False  # another placeholder reads the same constant
    if node.name in signature.inputs_to_buffers:
        name = signature.inputs_to_buffers[node.name]
        return name not in signature.buffers_to_mutate.values()
    return (
        node.name in signature.inputs_to_parameters
        or node.name in signature.inputs_to_lifted_tensor_constants
    )


def _add_constant(program: ExportedProgram, value: torch.Tensor, prefix: str) -> Node:
    """Add a lifted tensor constant in front of all other placeholders."""
    graph = program.graph
    taken = {node.name for node in graph.nodes} | program.constants.keys()
    taken |= program.state_dict.keys()
    number = 0
    while (name := f"{prefix}_{number}") in taken:
        number += 1
    first = next(node for node in graph.nodes if node.op == "placeholder")
    with graph.inserting_before(first):
        node = graph.placeholder(name)
    node.meta["val"] = _fake_mode(graph).from_tensor(value, static_shapes=True)
    spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), name)
    program.graph_signature.input_specs.insert(0, spec)
    program.constants[name] = value
    return node


def _fake_mode(graph: Graph) -> Any:
    return next(
        node.meta["val"].fake_mode
        for node in graph.nodes
        if isinstance(node.meta.get("val"), FakeTensor)
    )
