# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Lowering several methods, or one program several times, fails or goes wrong.

The gap
    A lowering empties the constants of the program that it was given, so that the
    same program cannot be lowered again. Delegation tags stay in the branches of a
    ``cond`` and confuse the next partitioner. A constant that a delegate shares with
    a list, a branch or an output stops the lowering. Partitions come in the order of
    a set of strings, which changes from process to process. A single partitioner is
    taken in a list only, against the documentation. A method without inputs whose ops
    have numbers among their operands raises. A buffer that one partition reads
    and another writes is copied, and the reader keeps the old value for ever.
What is done
    The lowering gets tables of its own; tags are taken off wherever they are; every
    user of a shared constant gets its copy; partitions come in the order in which
    they were proposed; a partitioner is put in a list; lifted numbers are declared in
    the order in which they were lifted. A buffer that is written stays
    outside of delegates, unless one delegate does all with it.
What is refused
    An int64 constant in a branch and a matrix product with a symbolic size go to the
    CPU, with the reason in the partitioner's report; stock fails on them later.

"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from arm_ext.fixes._hooks import wrap_cut
from arm_ext.fixes._support import check_first
from arm_ext.lowering import delegation_tags, partition_boundary, shared_constants
from arm_ext.partitioner.branch_int64_check import BranchInt64Check
from arm_ext.partitioner.symbolic_linear_check import SymbolicLinearCheck
from arm_ext.patcher import Patcher
from executorch.backends.arm.tosa import TosaSpecification
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.operator_support import chain, OperatorSupportBase

_BACKEND_API = "executorch.exir.backend.backend_api"
_CHECKS = "executorch.backends.arm.operator_support.tosa_supported_operators"
_PARTITIONER = "executorch.backends.arm.tosa.partitioner:TOSAPartitioner"


def _own_constants(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    program = wrapped(*args, **kwargs)
    program._constants = dict(program._constants)
    return program


def _lift_constants(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    program = wrapped(*args, **kwargs)
    shared_constants.declare_in_graph_order(program)
    return program


def _after_partitioner(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> None:
    wrapped(*args, **kwargs)
    partitioned, _ = args
    delegation_tags.tag_with_producer(partitioned.graph_module)
    shared_constants.share_mutated_buffers(partitioned)


def _lower_one(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> torch.fx.GraphModule:
    lowered = wrapped(*args, **kwargs)
    if not kwargs.get("is_submodule", False):
        delegation_tags.clear_tags_in_bodies(lowered)
    return lowered


def _remove_metadata(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> None:
    (graph,) = args
    wrapped(graph)
    delegation_tags.clear_tags_in_bodies(graph.owning_module)


def _duplicate(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> set[str]:
    program, name = args
    return shared_constants.duplicate_for_every_user(
        program, name, lambda: wrapped(program, name)
    )


def _create_submodule(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    submodule, call = wrapped(*args, **kwargs)
    partition_boundary.forget_constant_inputs(submodule)
    partition_boundary.unwrap_symbol(submodule, call)
    return submodule, call


def _partition(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    result = wrapped(*args, **kwargs)
    ordered = delegation_tags.in_order(result.partition_tags)
    return dataclasses.replace(result, partition_tags=ordered)


def _simplify_dim(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    (dim,) = args
    return wrapped(dim.meta["val"] if isinstance(dim, Node) else dim)


def _listed(partitioners: Any) -> Any:
    if isinstance(partitioners, dict):
        return {name: _listed(own) for name, own in partitioners.items()}
    return [partitioners] if isinstance(partitioners, Partitioner) else partitioners


def _to_edge_and_lower(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    if "partitioner" in kwargs:
        kwargs = {**kwargs, "partitioner": _listed(kwargs["partitioner"])}
    elif len(args) > 2:
        args = (*args[:2], _listed(args[2]), *args[3:])
    return wrapped(*args, **kwargs)


def _make_check(
    tosa_spec: TosaSpecification,
    exported_program: ExportedProgram,
    reporter: WhyNoPartitionReporter,
) -> OperatorSupportBase:
    return chain(
        BranchInt64Check(tosa_spec, reporter), SymbolicLinearCheck(tosa_spec, reporter)
    )


def _is_quantized(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> bool:
    """Say no for what calls a delegate, a branch or a loop body."""
    (node,) = args
    modules = (n for n in node.all_input_nodes if n.op == "get_attr")
    return all("val" in module.meta for module in modules) and wrapped(node)


def install(patcher: Patcher) -> None:
    patcher.wrap(
        "executorch.exir.program._fake_program:get_fake_program",
        _own_constants,
        parameters=("real_exported_program",),
    )
    patcher.wrap(
        "executorch.exir.program._program:lift_constant_tensor_pass",
        _lift_constants,
        parameters=("ep",),
    )
    patcher.wrap(
        "executorch.exir.program._fake_program:update_to_real_program",
        _after_partitioner,
        parameters=("fake_exported_program", "real_exported_program"),
    )
    patcher.wrap(
        "executorch.exir.backend.canonical_partitioners.duplicate_constant_node_pass:"
        "duplicate_constant_node",
        _duplicate,
        parameters=("exported_program", "candidate_node"),
    )
    patcher.wrap(
        "executorch.exir.lowered_backend_module:create_submodule_from_nodes",
        _create_submodule,
        parameters=("gm", "node_list", "tag", "skip_legalize_graph"),
    )
    wrap_cut(patcher, "_partition_and_lower", _lower_one)
    patcher.wrap(
        f"{_BACKEND_API}:remove_used_metadata", _remove_metadata, parameters=("graph",)
    )
    patcher.wrap(
        f"{_PARTITIONER}.partition",
        _partition,
        parameters=("self", "exported_program"),
    )
    patcher.wrap(
        "executorch.backends.transforms.dim_maps:_simplify_dim",
        _simplify_dim,
        parameters=("dim",),
    )
    patcher.wrap(
        "executorch.exir.program._program:to_edge_transform_and_lower",
        _to_edge_and_lower,
        parameters=("args", "kwargs"),
    )
    patcher.wrap(f"{_CHECKS}:is_quantized", _is_quantized, parameters=("node",))
    check_first(patcher, _make_check)
