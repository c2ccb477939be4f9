# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A backend that delegates what it is told to, and runs it with the interpreter.

Its delegates beside those of the Arm backends show what ExecuTorch itself does with
partitions, whatever a backend makes of them.

"""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from arm_ext import verify
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.partitioner import (
    DelegationSpec,
    Partitioner,
    PartitionResult,
)
from executorch.exir.backend.utils import tag_constant_data, tag_mutated_buffer
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import GraphModule, Interpreter, Node

STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


class InterpretedBackend(BackendDetails):
    """Compiles to nothing: the delegate keeps its edge program."""

    @staticmethod
    def preprocess(edge_program, compile_specs):
        return PreprocessResult(processed_bytes=str(edge_program.graph).encode())


class InterpretedPartitioner(Partitioner):
    """Tags each node with what ``choose`` returns for it: a number, or None.

    Args:
        choose (Callable): Is asked about each ``call_function`` node.
        own_buffers (bool): Delegates also take the buffers that they mutate.

    """

    def __init__(
        self, choose: Callable[[Node], int | None], own_buffers: bool = False
    ) -> None:
        self.choose = choose
        self.own_buffers = own_buffers

    def partition(self, exported_program):
        tags = {}
        spec = DelegationSpec(InterpretedBackend.__name__, [])
        for module in exported_program.graph_module.modules():
            for node in module.graph.nodes if isinstance(module, GraphModule) else ():
                if node.op == "call_function":
                    number = self.choose(node)
                    if number is not None:
                        node.meta["delegation_tag"] = f"tag{number}"
                        tags[f"tag{number}"] = spec
        tag_constant_data(exported_program)
        if self.own_buffers:
            tag_mutated_buffer(exported_program)
        return PartitionResult(exported_program, tags)


def by_op(**numbers: int) -> Callable[[Node], int | None]:
    """Choose by the name of the op: ``by_op(mul=0, add=1)``; getitems follow."""

    def choose(node: Node) -> int | None:
        if node.target is operator.getitem:
            return choose(node.args[0])
        name = getattr(node.target, "__name__", "").split(".")
        return next((numbers[part] for part in name if part in numbers), None)

    return choose


class InterpretedDelegate(torch.nn.Module):
    """Stands for a delegate of the backend and keeps the buffers that it took."""

    def __init__(self, delegate: LoweredBackendModule) -> None:
        super().__init__()
        program = delegate.original_module
        self.graph_module = program.graph_module
        self.signature = program.graph_signature
        stored = {**program.state_dict, **program.constants}
        self.stored = {name: tensor.clone() for name, tensor in stored.items()}

    def forward(self, *inputs):
        given = iter(inputs)
        arguments = [
            self.stored[spec.target] if spec.kind in STORED else next(given)
            for spec in self.signature.input_specs
        ]
        assert next(given, None) is None
        outputs = Interpreter(self.graph_module).run(*arguments)
        results = []
        for spec, value in zip(self.signature.output_specs, outputs, strict=True):
            if spec.kind is OutputKind.BUFFER_MUTATION:
                self.stored[spec.target].copy_(value)
            else:
                results.append(value)
        return results


def run_where_compiled(delegate: LoweredBackendModule) -> torch.nn.Module:
    """Return what runs a delegate, whichever backend it has."""
    if delegate.backend_id == InterpretedBackend.__name__:
        return InterpretedDelegate(delegate)
    return verify.ReferenceDelegate(delegate)


def executable(program, method="forward", run_delegate=None) -> GraphModule:
    """Return a lowered method as a module that runs here."""
    module = program.exported_program(method).module()
    verify._own_buffers(module)
    return verify._replace_delegates(module, run_delegate or run_where_compiled)
