# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""An int64 constant index stays on the CPU or throws.

The gap
    TOSA indexes with int32, PyTorch with int64. An index that is a constant
    could be narrowed at compile time, but the support checks of ``gather``,
    ``embedding`` and ``index_select`` demand int32, the one of ``index.Tensor``
    takes no ``None`` and accepts an int64 constant that
    ``DecomposeIndexTensorToGatherPass`` then stops at. Negative values reach TOSA
    as they are and select anything.
What is done
    Just before a program is partitioned for an Arm backend,
    ``NarrowConstantIndexPass`` runs on a copy of it: there the edge dialect has
    the constants' values, in ``to_edge_transform_and_lower`` and in
    ``to_edge`` + ``to_backend`` alike. Each rewritten node is shown to the
    partitioner's own support chain and put back if that declines.
    ``ConstantIndexCheck`` in front of the chain keeps on the CPU what was refused.
    Beside it, ``FlattenIndexPutIndicesPass`` in the backend's pipeline gives
    ``index_put`` the rank-1 indices that its lowering counts on, and
    ``RewriteConstantScatterPass`` shows the quantizer an ``index_put`` where it
    would leave a ``scatter`` unquantized.
What is refused
    Values out of range or beyond int32, empty indices, buffers that the program
    writes, places written more than once, a source of symbolic size, and an int64
    index inside a control-flow branch: the op stays on the CPU, with the reason
    in the partitioner's report. So does a mask that is known only at run time.

"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from arm_ext import fix
from arm_ext.partitioner.constant_index_check import ConstantIndexCheck
from arm_ext.passes.flatten_index_put_indices_pass import FlattenIndexPutIndicesPass
from arm_ext.passes.index_ops import match
from arm_ext.passes.narrow_constant_index_pass import NarrowConstantIndexPass
from arm_ext.passes.rewrite_constant_scatter_pass import RewriteConstantScatterPass
from arm_ext.patcher import Patcher
from executorch.backends.arm._passes import NormalizeIndexPutNoneIndicesPass
from executorch.backends.arm.operator_support.index_select_support import (
    IndexSelectSupported,
)
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.backends.arm.tosa.specification import TosaLoweringContext
from executorch.exir.backend.backend_api import MethodProgramsPartitionerSpec
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.backend.utils import WhyNoPartitionReporter
from executorch.exir.dialects._ops import ops as exir_ops
from torch._export.utils import _get_shape_env_from_gm
from torch.export import ExportedProgram
from torch.fx import Graph, Node
from torch.fx.passes.operator_support import chain

_SUPPORT = "executorch.backends.arm.operator_support.tosa_supported_operators"


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


def _support_chain(
    partitioner: TOSAPartitioner, program: ExportedProgram
) -> Callable[[Node], str | None]:
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


def narrow_constant_indices(
    program: ExportedProgram, partitioner: Partitioner
) -> ExportedProgram:
    """Return the program with its constant indices narrowed for ``partitioner``.

    The program itself is returned where there is nothing to do: no index op, or
    a partitioner of another backend.

    """
    if not isinstance(partitioner, TOSAPartitioner):
        return program
    if not any(match(node) for node in program.graph.nodes):
        return program
    narrowed = _copy(program)
    why_not = _support_chain(partitioner, narrowed)
    result = NarrowConstantIndexPass(narrowed, why_not)(narrowed.graph_module)
    return narrowed if result.modified else program


def _to_backend(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    first, *rest = args
    if isinstance(first, MethodProgramsPartitionerSpec):
        partitioners = first.method_to_partitioner
        programs = {
            name: narrow_constant_indices(program, partitioners[name])
            if name in partitioners
            else program
            for name, program in first.method_to_edge_program.items()
        }
        first = dataclasses.replace(first, method_to_edge_program=programs)
    elif isinstance(first, ExportedProgram) and rest:
        first = narrow_constant_indices(first, rest[0])
    return wrapped(first, *rest, **kwargs)


def _tosa_support_factory(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> Any:
    return chain(_first_check(*args, **kwargs), wrapped(*args, **kwargs))


def _first_check(
    tosa_spec: TosaSpecification,
    exported_program: ExportedProgram,
    reporter: WhyNoPartitionReporter,
    *args: Any,
    **kwargs: Any,
) -> ConstantIndexCheck:
    return ConstantIndexCheck(exported_program, reporter)


def _configure_pass_insertions(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> None:
    wrapped(*args, **kwargs)
    instance.insert_passes_before(
        NormalizeIndexPutNoneIndicesPass, [FlattenIndexPutIndicesPass()]
    )


def _transform_for_annotation(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> Any:
    model = args[0] if args else kwargs["model"]
    return wrapped(RewriteConstantScatterPass(tfa_pass=True)(model).graph_module)


def _takes_int64_constant() -> bool:
    """Whether the stock check of ``index_select`` takes an int64 constant."""
    graph = Graph()
    source, index = graph.placeholder("x"), graph.placeholder("c_index")
    source.meta["val"] = torch.empty(4, 2, device="meta")
    index.meta["val"] = torch.empty(3, dtype=torch.int64, device="meta")
    node = graph.call_function(
        exir_ops.edge.aten.index_select.default, (source, 0, index)
    )
    spec = TosaSpecification.create_from_string("TOSA-1.0+FP")
    check = IndexSelectSupported(spec, WhyNoPartitionReporter())
    return check.is_node_supported({}, node)


def needs(installed: fix.Installed) -> fix.Need:
    if _takes_int64_constant():
        return fix.already_fixed("index_select takes an int64 index")
    return fix.apply()


def install(patcher: Patcher) -> None:
    patcher.wrap(
        "executorch.backends.arm._passes.arm_pass_manager:"
        "ArmPassManager._configure_pass_insertions",
        _configure_pass_insertions,
        parameters=("self", "exported_program"),
    )
    patcher.wrap(
        "executorch.backends.arm.quantizer.arm_quantizer:"
        "TOSAQuantizer.transform_for_annotation",
        _transform_for_annotation,
        parameters=("self", "model"),
    )
    patcher.wrap(
        "executorch.exir.backend.backend_api:to_backend",
        _to_backend,
        parameters=("args",),
    )
    patcher.wrap(
        f"{_SUPPORT}:tosa_support_factory",
        _tosa_support_factory,
        parameters=(
            "tosa_spec",
            "exported_program",
            "reporter",
            "additional_checks",
            "additional_positive_checks",
        ),
    )
