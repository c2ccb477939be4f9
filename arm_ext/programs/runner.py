# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Runs a reference program on the executorch of this process."""

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from arm_ext import targets, verify
from arm_ext.coverage import coverage, Coverage, left_op, LeftOp, reject_reasons
from arm_ext.patcher import Patcher
from arm_ext.programs._program import Case, Expected, Flow, Left, Outcome
from arm_ext.targets import Target, TARGETS
from executorch.exir import EdgeCompileConfig, to_edge
from torch.export import export, ExportedProgram
from torch.utils import _pytree as pytree
from torchao.quantization.pt2e.quantize_pt2e import (
    convert_pt2e,
    prepare_pt2e,
    prepare_qat_pt2e,
)

_INTEGER_ONLY = ("vgf-int", "ethos-u")


@dataclass
class _Progress:
    """What is known of a case so far; an error leaves the rest as it is."""

    outcome: Outcome = Outcome()
    caught: list[warnings.WarningMessage] = field(default_factory=list)
    partition_seconds: float = 0.0

    def know(self, **changes: Any) -> None:
        self.outcome = replace(self.outcome, **changes)


def run(case: Case) -> Outcome:
    """Lower a case, run it, make its ``.pte``, and return what became of it.

    Never raises for what executorch, Vela or the converter do: their error is
    the outcome.

    """
    torch.manual_seed(0)
    progress = _Progress()
    start = time.perf_counter()
    with _observe(progress):
        try:
            _run(case, progress)
        except (Exception, SystemExit) as error:  # Vela leaves by SystemExit
            progress.know(error=first_line(error))
    progress.know(
        warnings=_texts(progress.caught),
        partition_seconds=progress.partition_seconds or None,
        seconds=time.perf_counter() - start,
    )
    return progress.outcome


def _run(case: Case, progress: _Progress) -> None:
    program, target = case.program, TARGETS[case.target]
    module, inputs = program.build()
    if program.flow is Flow.PARTITION:
        _partition(module, inputs, target, progress)
        return
    eager = _prepare(case, module, inputs, target)
    exported = export(eager, inputs, dynamic_shapes=program.dynamic_shapes)
    wanted = exported.module()(*inputs)
    edge = targets.lower(exported, inputs, target)
    covered = coverage(edge)
    progress.know(delegates=covered.delegates, left=_left(covered.compute_left))
    allowed = _allowed(case.expected, exported)
    progress.know(
        difference=difference(wanted, verify.run(edge, *inputs)), allowed=allowed
    )
    pte = edge.to_executorch().buffer
    progress.know(pte_bytes=len(pte))
    if not covered.delegates:
        got = _run_pte(pte, inputs)
        progress.know(difference=difference(wanted, got, structure=False))


@contextmanager
def _observe(progress: _Progress) -> Iterator[None]:
    """Note warnings, reject reasons and the CPU time of ``partition()``."""

    def partition(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
        start = time.thread_time()  # what others do on the machine does not count
        try:
            return wrapped(*args, **kwargs)
        finally:
            progress.partition_seconds += time.thread_time() - start

    patcher = Patcher()
    with warnings.catch_warnings(record=True) as caught, reject_reasons():
        warnings.simplefilter("always")
        progress.caught = caught
        patcher.wrap(
            "executorch.backends.arm.tosa.partitioner:TOSAPartitioner.partition",
            partition,
            parameters=("self", "exported_program"),
        )
        try:
            yield
        finally:
            patcher.undo()


def _prepare(
    case: Case, module: torch.nn.Module, inputs: Sequence[Any], target: Target
) -> torch.nn.Module:
    """Return the module to lower: the program's own or the quantized one."""
    program = case.program
    if program.flow is Flow.LOWER and not case.target.startswith(_INTEGER_ONLY):
        return module
    prepare = prepare_pt2e
    if program.flow is Flow.QAT:
        prepare, module = prepare_qat_pt2e, module.train()
    guards = program.flow in (Flow.GUARDS, Flow.QAT)
    exported = export(module, tuple(inputs), dynamic_shapes=program.dynamic_shapes)
    with _guards_everywhere():
        captured = exported.module(check_guards=guards)
    if guards and not _has_guards(captured):
        raise RuntimeError("torch.export left the guards out of the module")
    prepared = prepare(captured, target.quantizer(program.quantization))
    prepared(*inputs)
    return convert_pt2e(prepared)


@contextmanager
def _guards_everywhere() -> Iterator[None]:
    """Put guards in also where a file on the call stack has executorch in its path.

    torch leaves them out there, so a virtual environment in a folder of that name
    would hide the gap.

    """
    patcher = Patcher()
    patcher.set("torch.export._unlift:_ok_to_generate_guards_fn", lambda: True)
    try:
        yield
    finally:
        patcher.undo()


def _has_guards(module: torch.fx.GraphModule) -> bool:
    return any(node.op == "call_module" for node in module.graph.nodes)


def _partition(
    module: torch.nn.Module, inputs: Sequence[Any], target: Target, progress: _Progress
) -> None:
    edge = to_edge(
        export(module, tuple(inputs)),
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    result = target.partitioner().partition(edge.exported_program())
    nodes = result.tagged_exported_program.graph.nodes
    left = [
        left_op(node)
        for node in nodes
        if node.op == "call_function" and "delegation_tag" not in node.meta
    ]
    found = Coverage(len(result.partition_tags), tuple(left))
    progress.know(delegates=found.delegates, left=_left(found.compute_left))


def _left(ops: Sequence[LeftOp]) -> tuple[Left, ...]:
    return tuple(_left_one(op) for op in ops)


def _left_one(op: LeftOp) -> Left:
    if op.source is None:
        return Left(op.op, op.reasons)
    location = f"{op.source.file}:{op.source.line}"
    return Left(op.op, op.reasons, location, op.source.code)


def _allowed(expected: Expected, exported: ExportedProgram) -> float:
    """Return the largest difference allowed, in units of the outputs."""
    scales = [
        node.args[1]
        for node in exported.graph.nodes
        if node.target is torch.ops.quantized_decomposed.dequantize_per_tensor.default
        and any(user.op == "output" for user in node.users)
    ]
    if scales:
        # Scale times code is rounded to float32 once on either side.
        return expected.steps * max(scales) * (1 + 1e-6)
    return expected.tolerance


def difference(wanted: Any, got: Any, structure: bool = True) -> float:
    """Return the largest absolute difference of two outputs.

    Args:
        wanted (Any): A tensor or a nested structure of them.
        got (Any): The same.
        structure (bool): False to compare the flat lists of tensors only.

    Returns:
        float: 0.0 when equal, equal NaNs and infinities included.

    Raises:
        AssertionError: The structures, shapes, dtypes, NaNs or infinities are not
            the same.

    """
    wanted_flat, wanted_spec = pytree.tree_flatten(wanted)
    got_flat, got_spec = pytree.tree_flatten(got)
    if structure:
        assert wanted_spec == got_spec, f"outputs {got_spec}, eager {wanted_spec}"
    assert len(wanted_flat) == len(got_flat), "another number of outputs than eager"
    pairs = zip(wanted_flat, got_flat)
    return max((_tensor_difference(w, g) for w, g in pairs), default=0.0)


def _tensor_difference(wanted: torch.Tensor, got: torch.Tensor) -> float:
    wanted, got = torch.as_tensor(wanted), torch.as_tensor(got)
    assert got.shape == wanted.shape, f"shape {got.shape}, eager {wanted.shape}"
    assert got.dtype == wanted.dtype, f"dtype {got.dtype}, eager {wanted.dtype}"
    wanted, got = wanted.double(), got.double()
    same = (wanted == got) | (wanted.isnan() & got.isnan())
    apart = (wanted - got).abs().masked_fill(same, 0.0)
    assert apart.isfinite().all(), "NaN or infinity not where eager has it"
    return apart.max().item() if apart.numel() else 0.0


def _run_pte(pte: bytes, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """Run a program without delegates in the wheel's runtime.

    A kernel that is missing shows there and nowhere else.

    """
    import executorch.kernels.quantized  # noqa: F401  registers its kernels
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(pte).load_method("forward")
    assert method is not None, "it has no method forward"
    flat = pytree.tree_leaves(tuple(inputs))
    return list(method.execute([value.contiguous() for value in flat]))


def first_line(error: BaseException) -> str:
    """Return type and first line of the error that started the chain."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def _texts(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return the first lines of the warnings that address the user of a model."""
    texts = [
        str(warning.message).strip().splitlines()[0]
        for warning in caught
        if issubclass(warning.category, UserWarning) and str(warning.message).strip()
    ]
    return tuple(dict.fromkeys(texts))
