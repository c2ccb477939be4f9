# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A partition that cannot be lowered ends the lowering of the whole model.

The gap
    A node that the partitioner takes and that the Arm passes, the TOSA serializer,
    Vela or the model converter then reject: the user gets their exception, and no
    program.
What is done
    The program is partitioned again without the nodes that are the reason: those that
    the error names, or else those that are found by lowering parts of the partition,
    or else the whole partition. They run on the CPU, decomposed if they were kept
    whole for the delegate. One warning says which they are, where they come from and
    what the tool said. A lowering without an error is what it was. A partition that
    was lowered before another one failed is not lowered again. Vela runs in a forked
    process, one a lowering, as it may end with a segmentation fault; not on Windows
    and macOS.
What is refused
    An error that the backend has with any program, such as a converter that is missing
    or a flag that Vela does not know, is raised, and one in a pass that is neither
    executorch's nor ours. With ``arm_ext.apply(strict=True)`` every error is.

"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeGuard

from arm_ext.fixes._support import check_first
from arm_ext.fixes._warnings import warn, warn_of_nothing, warn_once_each
from arm_ext.lowering.child import can_fork, Child
from arm_ext.lowering.delegation_tags import control_flow_bodies
from arm_ext.lowering.fallback import alike_in, Failure, offenders
from arm_ext.lowering.program_digest import program_digest
from arm_ext.lowering.tool_error import (
    is_of_a_foreign_pass,
    named_nodes,
    tool_words,
    works_at_all,
)
from arm_ext.partitioner.excluded_check import ExcludedCheck, is_quantize_or_dequantize
from arm_ext.partitioner.source import source_of
from arm_ext.patcher import Patcher
from executorch.backends.arm import arm_vela
from executorch.backends.arm.common.arm_compile_spec import ArmCompileSpec
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir.backend.backend_api import MethodProgramsPartitionerSpec
from executorch.exir.backend.backend_details import PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.utils import WhyNoPartitionReporter
from executorch.exir.passes.replace_aten_with_edge_pass import aten_to_edge
from torch.export import ExportedProgram
from torch.fx import Node

_BACKENDS = (
    "executorch.backends.arm.tosa.backend:TOSABackend",
    "executorch.backends.arm.vgf.backend:VgfBackend",
    "executorch.backends.arm.ethosu.backend:EthosUBackend",
)
# Entries of a compile spec with which a lowering leaves files behind.
_WRITES_FILES = (ArmCompileSpec._DEBUG_ARTIFACT_KEY, ArmCompileSpec._DEBUG_MODE_KEY)
_VELA = "executorch.backends.arm.arm_vela"
# Lowerings of a program after which single nodes are looked for. After more, each
# partition that fails is left on the CPU.
_SEARCHES = 8


@dataclass
class _Attempt:
    """One lowering: the nodes to leave out, by name, and what it fails on.

    ``lowered`` has what the backend made of partitions, in the attempts before too.

    """

    excluded: Mapping[str, BaseException]
    only: Collection[str] | None = None
    failures: list[Failure] = field(default_factory=list)
    lowered: dict[Hashable, PreprocessResult] = field(default_factory=dict)


@dataclass(frozen=True)
class _Rejected:
    """A node that is left out of the delegates, as the user is told of it.

    Attributes:
        name (str): Its name.
        node (Node | None): None if it is not in the program: if it was rewritten.
        error (BaseException): What the lowering raised.

    """

    name: str
    node: Node | None
    error: BaseException

    def __str__(self) -> str:
        return f"{self.name}{self._place()}: {tool_words(self.error)}"

    def _place(self) -> str:
        if self.node is None:
            return ""
        source = source_of(self.node)
        op = getattr(self.node.target, "__name__", self.node.target)
        return f" ({op}) at {source}" if source else f" ({op})"


@dataclass
class _Flow:
    """A call of ``to_edge_transform_and_lower``, which can decompose ops.

    Attributes:
        decomposed (dict): The ops that are not to be kept whole any more, by their
            names in the ATen program.
        rejected (list): What its calls of ``to_backend`` left out.

    """

    decomposed: dict[str, _Rejected] = field(default_factory=dict)
    rejected: list[_Rejected] = field(default_factory=list)


class _Decompose(Exception):
    """Ops that were kept whole for a delegate fall on the CPU."""

    def __init__(self, ops: Mapping[str, _Rejected]) -> None:
        super().__init__("ops have to be decomposed")
        self.ops = ops


_attempt: ContextVar[_Attempt | None] = ContextVar("arm_ext_attempt", default=None)
_vela_child: ContextVar[Child | None] = ContextVar("arm_ext_vela_child", default=None)
_flow: ContextVar[_Flow | None] = ContextVar("arm_ext_flow", default=None)


@contextmanager
def _set(variable: ContextVar, value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


# What an attempt leaves out and what it fails on


def _make_check(
    tosa_spec: TosaSpecification,
    exported_program: ExportedProgram,
    reporter: WhyNoPartitionReporter,
) -> ExcludedCheck:
    attempt, flow = _attempt.get(), _flow.get()
    errors = {name: op.error for name, op in flow.decomposed.items()} if flow else {}
    if attempt:
        errors.update(attempt.excluded)
    reasons = {
        name: f"cannot be lowered: {tool_words(errors[name])}" for name in errors
    }
    return ExcludedCheck(reasons, attempt.only if attempt else None, reporter)


def _preprocess(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    attempt = _attempt.get()
    if attempt is None:
        return wrapped(*args, **kwargs)
    program, compile_specs = (*args, *kwargs.values())
    # The passes may erase nodes and rename them.
    nodes = {n.name: n for n in program.graph.nodes if _can_be_left_out(n)}
    key = _key(wrapped.__qualname__, program, compile_specs)
    if key in attempt.lowered:
        return attempt.lowered[key]
    try:
        result = wrapped(program, compile_specs)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:  # Vela leaves by SystemExit
        if is_of_a_foreign_pass(error):
            raise
        is_first = attempt.only is None and not attempt.failures
        if is_first and not works_at_all(wrapped, compile_specs):
            raise
        named = named_nodes(error, nodes)
        attempt.failures.append(Failure(tuple(nodes), error, named))
        return PreprocessResult()  # nobody sees it: the attempt has failed
    if key is not None and attempt.only is None:  # a trial does not warn
        attempt.lowered[key] = result
    return result


def _key(
    backend: str, program: ExportedProgram, compile_specs: list[CompileSpec]
) -> Hashable:
    """Return what a delegate depends on, None if the lowering writes files as well."""
    specs = tuple((spec.key, bytes(spec.value)) for spec in compile_specs)
    if any(key in _WRITES_FILES for key, _ in specs):
        return None
    return backend, specs, program_digest(program)


def _can_be_left_out(node: Node) -> bool:
    return (
        node.op == "call_function"
        and getattr(node.target, "__module__", None) != "_operator"
        and not is_quantize_or_dequantize(node)
    )


# The attempts


def _to_backend(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    first, *rest = args
    with warn_once_each(), Child("Vela") as child, _set(_vela_child, child):
        if isinstance(first, MethodProgramsPartitionerSpec):
            return _lower_methods(wrapped, first)
        if isinstance(first, ExportedProgram) and rest and _is_arm(rest[0]):
            return _lower_program(first, rest[0], lambda: wrapped(*args), {})
        return wrapped(*args, **kwargs)


def _is_arm(partitioner: Any) -> TypeGuard[TOSAPartitioner]:
    return isinstance(partitioner, TOSAPartitioner)


def _lower_methods(
    to_backend: Callable, spec: MethodProgramsPartitionerSpec
) -> dict[str, ExportedProgram]:
    """Lower all methods together; if that fails, each one by itself."""
    programs, partitioners = spec.method_to_edge_program, spec.method_to_partitioner
    arm = {name: p for name, p in partitioners.items() if _is_arm(p)}

    def lower(*names: str) -> dict[str, ExportedProgram]:
        chosen = {name: partitioners[name] for name in names}
        part = {n: p for n, p in programs.items() if n in chosen}
        return to_backend(MethodProgramsPartitionerSpec(part, chosen))

    attempt = _Attempt({})
    if len(partitioners) != 1 or not arm:
        with _set(_attempt, attempt):
            lowered = to_backend(spec)
        if not attempt.failures:
            return lowered
    lowered = dict(programs)
    for name in arm:
        lowered.update(
            _lower_program(
                programs[name], arm[name], partial(lower, name), attempt.lowered
            )
        )
    if others := partitioners.keys() - arm.keys():
        lowered.update(lower(*others))
    return lowered


def _lower_program(
    program: ExportedProgram,
    partitioner: TOSAPartitioner,
    lower: Callable[[], Any],
    done: dict[Hashable, PreprocessResult],
) -> Any:
    """Return ``lower()``, without the nodes that cannot be lowered.

    ``done`` has the partitions that need not be lowered again; it is added to.

    """
    alike = alike_in(program.graph)
    excluded: dict[str, BaseException] = {}
    for number in itertools.count():
        attempt = _Attempt(excluded, lowered=done)
        with _set(_attempt, attempt):
            lowered = lower()
        if not attempt.failures:
            _tell(_rejected(program, excluded))
            return lowered
        found: dict[str, BaseException] = {}
        for failure in attempt.failures:
            if number < _SEARCHES:
                found.update(offenders(failure, _trial(lower, excluded), alike))
            else:
                found.update(dict.fromkeys(failure.nodes, failure.error))
        if found.keys() <= excluded.keys():
            raise attempt.failures[0].error
        excluded = {**excluded, **found}
        _decompose(program, partitioner, found)


def _rejected(
    program: ExportedProgram, errors: Mapping[str, BaseException]
) -> list[_Rejected]:
    module = program.graph_module
    graphs = [m.graph for m in (module, *control_flow_bodies(module))]
    nodes = {node.name: node for graph in graphs for node in graph.nodes}
    return [_Rejected(n, nodes.get(n), error) for n, error in errors.items()]


def _trial(
    lower: Callable[[], Any], excluded: Mapping[str, BaseException]
) -> Callable[[Sequence[str]], Failure | None]:
    """Return a function that lowers some nodes only and says what failed first."""

    def fails(nodes: Sequence[str]) -> Failure | None:
        attempt = _Attempt(excluded, frozenset(nodes))
        with _set(_attempt, attempt), warn_of_nothing():
            lower()
        return next(iter(attempt.failures), None)

    return fails


def _decompose(
    program: ExportedProgram,
    partitioner: TOSAPartitioner,
    errors: Mapping[str, BaseException],
) -> None:
    """Start again if an op was kept whole that a delegate does not take after all."""
    flow = _flow.get()
    if flow is None:
        return
    kept = set(map(aten_to_edge, partitioner.ops_to_not_decompose(program)[0]))
    ops = {
        op.node.meta["from_node"][-1].name: op
        for op in _rejected(program, errors)
        if op.node and op.node.target in kept and op.node.meta.get("from_node")
    }
    if ops.keys() - flow.decomposed.keys():
        raise _Decompose(ops)


def _to_edge_transform_and_lower(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> Any:
    flow = _Flow()
    with _set(_flow, flow), warn_once_each():
        lowered = _lowered_as_decomposed(lambda: wrapped(*args, **kwargs), flow)
    _warn([*_taken_apart(flow), *flow.rejected])
    return lowered


def _lowered_as_decomposed(lower: Callable[[], Any], flow: _Flow) -> Any:
    """Return ``lower()``, started again whenever more ops are to be decomposed."""
    while True:
        try:
            return lower()
        except _Decompose as decompose:
            flow.rejected.clear()
            flow.decomposed.update(decompose.ops)


# What the user is told


def _taken_apart(flow: _Flow) -> Iterator[_Rejected]:
    """Yield the decomposed ops of which no part is rejected itself."""
    rejected = {op.node.meta.get("stack_trace") for op in flow.rejected if op.node}
    for op in flow.decomposed.values():
        if op.node and op.node.meta.get("stack_trace") not in rejected:
            yield op


def _tell(rejected: Collection[_Rejected]) -> None:
    flow = _flow.get()
    if flow is None:
        _warn(rejected)
    else:
        flow.rejected.extend(rejected)


def _warn(rejected: Collection[_Rejected]) -> None:
    if rejected:
        lines = list(map(str, rejected))
        what = f"{len(lines)} nodes" if len(lines) > 1 else "1 node"
        warn(
            f"{what} could not be lowered and left on the CPU; "
            "arm_ext.apply(strict=True) raises instead:\n  " + "\n  ".join(lines)
        )


def _vela(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    (argv,) = (*args, *kwargs.values())
    child = _vela_child.get()
    return wrapped(argv) if child is None else child.call(wrapped, argv)


def install(patcher: Patcher) -> None:
    for backend in _BACKENDS:
        patcher.wrap(
            f"{backend}.preprocess",
            _preprocess,
            parameters=("edge_program", "compile_specs"),
        )
    if arm_vela.has_vela and can_fork():
        patcher.wrap(f"{_VELA}:vela.main", _vela, parameters=("argv",))
    check_first(patcher, _make_check)
    patcher.wrap(
        "executorch.exir.backend.backend_api:to_backend",
        _to_backend,
        parameters=("args",),
    )
    patcher.wrap(
        "executorch.exir.program._program:to_edge_transform_and_lower",
        _to_edge_transform_and_lower,
        parameters=("args", "kwargs"),
    )
