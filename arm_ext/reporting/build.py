# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Lower a model and write down what runs where."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from arm_ext._engine import patched
from arm_ext.coverage import coverage, LeftOp, op_name, reject_reasons
from arm_ext.operators import operators
from arm_ext.partitioner.boundary import boundary_bytes
from arm_ext.partitioner.source import source_of
from arm_ext.reporting.data import CpuOp, Delegate, Op, Report
from arm_ext.reporting.macs import macs
from arm_ext.reporting.remedies import remedies
from arm_ext.reporting.vela import estimate
from arm_ext.targets import lower, quantize as quantize_module, Target, TARGETS
from arm_ext.verify import tosa_of
from executorch.exir import EdgeProgramManager
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

_CALL = torch.ops.higher_order.executorch_call_delegate


def report(
    model: torch.nn.Module | ExportedProgram | EdgeProgramManager,
    inputs: Sequence[Any] = (),
    *,
    target: str | Target = "vgf",
    quantize: str | None = None,
    stock: bool = False,
    name: str | None = None,
) -> Report:
    """Lower a model for an Arm target and report what runs where, and why.

    An error of the lowering is in the report; so is what it warned of.

    Args:
        model: A module in eval mode, an exported program, or an edge program, which
            may be lowered already: its reasons are then unknown.
        inputs (Sequence[Any]): Example inputs; a program needs none.
        target (str | Target): A name in ``arm_ext.targets.TARGETS``, an Ethos-U
            accelerator such as ``"ethos-u85-512"``, or a target.
        quantize (str | None): ``"int8"``, ``"int8-per-tensor"`` or ``"a16w8"``: quantize
            a module first, calibrated on ``inputs``.
        stock (bool): Lower on the executorch that is installed, without arm_ext.
        name (str | None): What the report calls the model.

    Raises:
        ValueError: The target or the quantization is unknown, or a program that is
            exported already is to be quantized.

    """
    where = _target(target)
    if quantize is not None and not isinstance(model, torch.nn.Module):
        raise ValueError("only a module can be quantized, not an exported program")
    names: dict[str, Any] = {
        "model": name or type(model).__name__,
        "target": where.name,
        "side": "stock" if stock else "patched",
    }
    with contextlib.ExitStack() as stack:
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        stack.enter_context(patched(only=()) if stock else patched())
        try:
            with reject_reasons():
                edge = _lowered(model, inputs, where, quantize)
        except Exception as error:
            return Report(**names, warnings=_ours(caught), error=_first_line(error))
        return Report(**names, warnings=_ours(caught), **_parts(edge, where))


def _target(target: str | Target) -> Target:
    if isinstance(target, Target):
        return target
    if target in TARGETS:
        return TARGETS[target]
    if target.startswith("ethos-u"):
        return Target(target)
    raise ValueError(
        f"{target!r} is no target; one of {', '.join(TARGETS)}, or another Ethos-U"
    )


def _lowered(
    model: Any, inputs: Sequence[Any], target: Target, quantize: str | None
) -> EdgeProgramManager:
    if quantize is not None:
        model = quantize_module(model, inputs, target, quantize)
    if not isinstance(model, EdgeProgramManager):
        return lower(model, inputs, target)
    if any(map(_is_delegate_call, model.exported_program().graph.nodes)):
        return model
    return model.to_backend(target.partitioner())


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def _ours(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return what a user can act on: not the deprecations of what lowers."""
    told = [w for w in caught if w.category is UserWarning]
    return tuple(dict.fromkeys(str(w.message) for w in told if _is_ours(w)))


def _is_ours(warning: warnings.WarningMessage) -> bool:
    return "TOSA" in str(warning.message) or "CPU" in str(warning.message)


def _parts(edge: EdgeProgramManager, target: Target) -> dict[str, Any]:
    program = edge.exported_program()
    calls = [node for node in program.graph.nodes if _is_delegate_call(node)]
    modules = [getattr(program.graph_module, call.args[0].target) for call in calls]
    fixed = [operator for _, operator in operators()]
    values = [node for node in program.graph.nodes if node.op != "get_attr"]
    return {
        "delegates": tuple(
            _delegate(call.args[0].target, module, target)
            for call, module in zip(calls, modules)
        ),
        "ops": tuple(_ops(program.graph_module, calls, modules)),
        "cpu_ops": tuple(
            _cpu_op(left, target, fixed) for left in coverage(edge).compute_left
        ),
        "boundary_bytes": boundary_bytes(values, _partition(calls)),
    }


def _is_delegate_call(node: Node) -> bool:
    return node.target is _CALL


def _delegate(name: str, module: LoweredBackendModule, target: Target) -> Delegate:
    cost = None
    if module.backend_id == "EthosUBackend":
        cost = estimate(tosa_of(module), target.compile_spec())
    return Delegate(name, module.backend_id, len(module.processed_bytes), cost)


def _cpu_op(left: LeftOp, target: Target, fixed: list) -> CpuOp:
    source = None if left.source is None else str(left.source)
    todo = remedies(left.op, left.reasons, target, fixed)
    return CpuOp(left.node, left.op, left.reasons, todo, source)


def _partition(calls: Sequence[Node]) -> dict[Node, int]:
    """Return the delegate of each call and of the results taken out of it."""
    partition = {}
    for index, call in enumerate(calls):
        partition.update(dict.fromkeys((call, *call.users), index))
    return partition


def _ops(
    module: GraphModule,
    calls: Sequence[Node],
    delegates: Sequence[LoweredBackendModule],
) -> Iterator[Op]:
    """Yield the ops of a program with those of its delegates in their places."""
    names: dict[Node, str] = {}  # of the op that gives a value
    index_of = {call: index for index, call in enumerate(calls)}
    for node in module.graph.nodes:
        if node in index_of:
            index = index_of[node]
            inner = delegates[index].original_module.graph
            outer = [names.get(argument) for argument in node.args[1:]]
            yield from _inner_ops(inner, index, outer, names, node)
        elif node.op == "call_function" and not _is_getitem(node):
            names[node] = node.name
            yield _op(node, node.name, None, names)
        elif _is_getitem(node):
            names.setdefault(node, names.get(node.args[0], ""))


def _inner_ops(
    graph: torch.fx.Graph,
    index: int,
    outer: Sequence[str | None],
    names: dict[Node, str],
    call: Node,
) -> Iterator[Op]:
    inputs = iter(outer)
    for node in graph.nodes:
        if node.op == "placeholder":
            names[node] = next(inputs, None) or ""
        elif node.op == "output":
            for user in call.users:  # each takes one result out
                names[user] = names.get(node.args[0][user.args[1]], "")
        elif _is_getitem(node):
            names[node] = names[node.args[0]]
        elif node.op == "call_function":
            names[node] = f"delegate {index}/{node.name}"
            yield _op(node, names[node], index, names)


def _is_getitem(node: Node) -> bool:
    return node.op == "call_function" and op_name(node) == "getitem"


def _op(node: Node, name: str, delegate: int | None, names: dict[Node, str]) -> Op:
    reads = [names.get(source, "") for source in node.all_input_nodes]
    source = source_of(node)
    return Op(
        name,
        op_name(node),
        delegate,
        macs(node),
        tuple(dict.fromkeys(read for read in reads if read)),
        None if source is None else str(source),
    )
