# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Rewrite a copy of an edge program just before an Arm backend partitions it.

There the program has the values of its constants, in
``to_edge_transform_and_lower`` and in ``to_edge`` + ``to_backend`` alike, and the
partitioner that will judge the result is known. All fixes rewrite one copy, the one
that was installed last first.

"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, cast, NamedTuple

from arm_ext.patcher import Patcher
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.backends.arm.tosa.specification import TosaLoweringContext
from executorch.exir._program_utils import _get_updated_graph_signature
from executorch.exir.backend.backend_api import MethodProgramsPartitionerSpec
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch._export.utils import _get_shape_env_from_gm
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult

WhyNot = Callable[[Node], "str | None"]
# Changes the program it is given; returns whether it did.
Rewrite = Callable[[ExportedProgram, WhyNot], bool]


class _Change(NamedTuple):
    matches: Callable[[Node], bool]
    rewrite: Rewrite


# In the order in which they are made.
_changes: list[_Change] = []


def rewrite_before_partition(
    patcher: Patcher, matches: Callable[[Node], bool], rewrite: Rewrite
) -> None:
    """Have each program rewritten before an Arm backend partitions it.

    Args:
        patcher (Patcher): Wraps ``to_backend``.
        matches (Callable): Whether a node of the top-level graph is of interest; a
            program without such a node is not even copied.
        rewrite (Callable): Is given a copy of the program, and a function that
            returns why the partitioner does not take a node, or None if it does.

    """
    if not _changes:  # the fix that comes first is undone last
        patcher.wrap(
            "executorch.exir.backend.backend_api:to_backend",
            _to_backend,
            parameters=("args",),
        )
    change = _Change(matches, rewrite)
    patcher.register(
        "a rewrite before partitioning",
        lambda: _changes.insert(0, change),
        lambda: _changes.remove(change),
    )


def _to_backend(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    first, *rest = args
    if isinstance(first, MethodProgramsPartitionerSpec):
        partitioners = first.method_to_partitioner
        programs = {
            name: (
                _rewritten(program, partitioners[name])
                if name in partitioners
                else program
            )
            for name, program in first.method_to_edge_program.items()
        }
        first = dataclasses.replace(first, method_to_edge_program=programs)
    elif isinstance(first, ExportedProgram) and rest:
        first = _rewritten(first, rest[0])
    return wrapped(first, *rest, **kwargs)


def _rewritten(program: ExportedProgram, by: Partitioner) -> ExportedProgram:
    """Return a copy with all changes made, or the program if there are none."""
    if not isinstance(by, TOSAPartitioner):
        return program
    copied, result = None, program
    for matches, rewrite in _changes:
        if not any(map(matches, (copied or program).graph.nodes)):
            continue
        copied = copied or _copy(program)
        if rewrite(copied, _support_chain(by, copied)):
            result = copied
            # The node behind an output may be another one now.
            copied._graph_signature = _get_updated_graph_signature(
                copied.graph_signature, copied.graph_module
            )
    return result


def run_pass(graph_pass: PassBase, program: ExportedProgram) -> bool:
    """Run a pass on the graph of a program; return whether it changed that."""
    return cast(PassResult, graph_pass(program.graph_module)).modified


class _LastReason(WhyNoPartitionReporter):
    """Remembers the first reason given since it was asked last."""

    def __init__(self) -> None:
        super().__init__()
        self._reason: str | None = None

    def report_reject(self, node: Node, reason: str) -> None:
        self._reason = self._reason or reason

    def take(self) -> str:
        reason, self._reason = self._reason, None
        return reason or "not taken by the partitioner"


def _support_chain(partitioner: TOSAPartitioner, program: ExportedProgram) -> WhyNot:
    """Return a function that says why the partitioner declines a node."""
    reporter = _LastReason()
    support = partitioner._create_operator_support(program, reporter)
    context = TosaLoweringContext(
        partitioner.tosa_spec, _get_shape_env_from_gm(program.graph_module)
    )

    def why_not(node: Node) -> str | None:
        with context:
            supported = support.is_node_supported({}, node)
        reason = reporter.take()
        return None if supported else reason

    return why_not


def _copy(program: ExportedProgram) -> ExportedProgram:
    """Copy the graph and the tables of constants, not the tensors in them."""
    graph_module = copy.deepcopy(program.graph_module)
    return ExportedProgram(
        root=graph_module,
        graph=graph_module.graph,
        graph_signature=copy.deepcopy(program.graph_signature),
        state_dict=dict(program.state_dict),
        range_constraints=copy.deepcopy(program.range_constraints),
        module_call_graph=copy.deepcopy(program.module_call_graph),
        example_inputs=program.example_inputs,
        constants=dict(program.constants),
        verifiers=[program.verifier],
    )
