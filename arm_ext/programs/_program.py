# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What a reference program is, what is expected of it, and the list of all."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import FunctionType
from typing import Any

import torch

FLOAT = ("vgf", "vgf-fp")
INTEGER = ("vgf-int", "ethos-u85-256")
U55 = "ethos-u55-128"

Build = Callable[[], tuple[torch.nn.Module, tuple[Any, ...]]]


class Flow(str, Enum):
    """The calls that take a program from the module to the lowered graph.

    Attributes:
        LOWER: ``to_edge_transform_and_lower``; quantized first where the target
            has no float.
        QUANTIZE: The same, quantized on every target.
        GUARDS: As QUANTIZE, and ``prepare_pt2e`` gets the module with the guards
            that ``ExportedProgram.module()`` puts in by default.
        QAT: As GUARDS, with ``prepare_qat_pt2e``.
        PARTITION: ``to_edge`` and ``partition()`` alone, for graphs that take too
            long to lower.

    """

    LOWER = "lower"
    QUANTIZE = "quantize"
    GUARDS = "guards"
    QAT = "qat"
    PARTITION = "partition"


@dataclass(frozen=True)
class Expected:
    """What a lowered program must at least be.

    Attributes:
        delegates (int): Number of delegates; fewer is better, but for none.
        cpu_ops (tuple[str, ...] | None): The ops allowed on the CPU, Q/DQ not
            counted; None where any may stay as long as the program runs.
        tolerance (float): Largest difference to the eager program, absolute.
        steps (float): The same in quantisation steps of the output, for a
            quantized program against the quantized eager one.
        warns (str | None): What a warning of the lowering must contain.
        partition_seconds (float | None): Most CPU time that ``partition()`` may
            take.

    """

    delegates: int = 1
    cpu_ops: tuple[str, ...] | None = ()
    tolerance: float = 1e-5
    steps: float = 1.0
    warns: str | None = None
    partition_seconds: float | None = None


@dataclass(frozen=True)
class Gap:
    """A documented gap.

    Attributes:
        section (int): Section of the report on LeRobot policies; 0 for a gap
            that it does not list.
        name (str): Short kebab-case name, first part of the programs' names.
        title (str): The gap in a few words.
        fix (str | None): Name of the fix that closes it; None while it is open.

    """

    section: int
    name: str
    title: str
    fix: str | None = None

    def program(self, *targets: str, **options: Any) -> Callable[[Build], Build]:
        """Register the decorated function as a program of this gap.

        The program is named after the function and described by its docstring.

        Args:
            *targets (str): Names of the targets that it is lowered for.
            **options (Any): Other attributes of :class:`Program`.

        """

        def register(build: Build) -> Build:
            name = f"{self.name}/{build.__name__.replace('_', '-')}"
            summary = (build.__doc__ or "").strip().replace("``", "")
            self._list.append(Program(name, summary, self, build, targets, **options))
            return build

        return register

    @property
    def is_open(self) -> bool:
        """Whether no fix claims to close it yet."""
        return self.fix is None

    @property
    def state(self) -> str:
        """The state of the gap in words."""
        return "open" if self.is_open else f"closed by {self.fix}"

    @property
    def _list(self) -> "list[Program]":
        return PROGRAMS


class Policy(Gap):
    """A whole policy of a robot: its programs are the parts it is exported as.

    All fixes together are to lower it, so that none of them closes it, and it is
    run when asked for only: a part takes up to a minute.

    """

    def __init__(self, name: str, title: str) -> None:
        super().__init__(0, name, title)

    @property
    def is_open(self) -> bool:
        return False

    @property
    def state(self) -> str:
        return "a policy"

    @property
    def _list(self) -> "list[Program]":
        return POLICIES


@dataclass(frozen=True)
class Program:
    """A tiny model, the targets it is lowered for and what is expected there.

    Attributes:
        name (str): ``gap/program``.
        summary (str): What the model does, in a line.
        gap (Gap): The gap that it shows.
        build (Callable): Returns the module in eval mode and its inputs.
        targets (tuple[str, ...]): Names in ``arm_ext.targets.TARGETS``.
        flow (Flow): How it gets from the module to the lowered graph.
        quantization (str): A name in ``arm_ext.targets.QUANTIZATION``, used where
            the flow and the target ask for a quantized program.
        dynamic_shapes (Any): For ``torch.export.export``.
        expected (Expected): What is expected with arm_ext.
        on (Mapping[str, Expected]): The same for single targets.
        control (bool | tuple[str, ...]): Stock does it as well, on every target or
            on those named, and must keep doing so.

    """

    name: str
    summary: str
    gap: Gap
    build: Build
    targets: tuple[str, ...]
    flow: Flow = Flow.LOWER
    quantization: str = "int8"
    dynamic_shapes: Any = None
    expected: Expected = Expected()
    on: Mapping[str, Expected] = field(default_factory=dict)
    control: bool | tuple[str, ...] = False


@dataclass(frozen=True)
class Case:
    """One program on one target: a row of ``arm-ext check``."""

    program: Program
    target: str

    @property
    def name(self) -> str:
        return f"{self.program.name}@{self.target}"

    @property
    def is_control(self) -> bool:
        """Whether stock does it as well, and must keep doing so."""
        control = self.program.control
        return control if isinstance(control, bool) else self.target in control

    @property
    def is_open(self) -> bool:
        """Whether no fix claims to close the gap yet."""
        return self.program.gap.is_open and not self.is_control

    @property
    def expected(self) -> Expected:
        return self.program.on.get(self.target, self.program.expected)


PROGRAMS: list[Program] = []
POLICIES: list[Program] = []


def cases(programs: Sequence[Program] = PROGRAMS) -> list[Case]:
    """Return every program on every of its targets, in order."""
    return [Case(program, target) for program in programs for target in program.targets]


@dataclass(frozen=True)
class Left:
    """An op that was left on the CPU.

    Attributes:
        op (str): Name of the op.
        reasons (tuple[str, ...]): Why, all that is known.
        location (str | None): ``file:line`` in the model.
        code (str | None): That line.

    """

    op: str
    reasons: tuple[str, ...] = ()
    location: str | None = None
    code: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        delegates (int | None): Number of delegates; None when not lowered.
        left (tuple[Left, ...]): Ops left on the CPU, Q/DQ not counted.
        difference (float | None): Largest absolute difference to eager.
        allowed (float | None): What the difference may be.
        pte_bytes (int | None): Size of the ``.pte``; None when there is none.
        warnings (tuple[str, ...]): First lines of the warnings of the lowering.
        partition_seconds (float | None): CPU time of ``partition()``.
        seconds (float): What the whole case took.
        error (str | None): First line of the error that stopped it.

    """

    delegates: int | None = None
    left: tuple[Left, ...] = ()
    difference: float | None = None
    allowed: float | None = None
    pte_bytes: int | None = None
    warnings: tuple[str, ...] = ()
    partition_seconds: float | None = None
    seconds: float = 0.0
    error: str | None = None

    @property
    def cpu_ops(self) -> tuple[str, ...]:
        """The op names of ``left``."""
        return tuple(left.op for left in self.left)


def shortfalls(outcome: Outcome, case: Case) -> list[str]:
    """Return in what the outcome is worse than expected; empty when it is not."""
    if outcome.error is not None:
        return [outcome.error]
    expected = case.expected
    whole = case.program.flow is not Flow.PARTITION
    short = []
    if not _delegates_enough(outcome.delegates or 0, expected.delegates):
        short.append(f"{outcome.delegates} delegates, expected {expected.delegates}")
    if extra := _unexpected(outcome.cpu_ops, expected.cpu_ops):
        short.append(f"on the CPU: {', '.join(sorted(extra))}")
    if whole and not _within(outcome):
        short.append(f"difference {outcome.difference}, allowed {outcome.allowed}")
    if whole and outcome.pte_bytes is None:
        short.append("no .pte")
    if expected.warns and not any(expected.warns in w for w in outcome.warnings):
        short.append(f"no warning says {expected.warns!r}")
    limit, took = expected.partition_seconds, outcome.partition_seconds or 0.0
    if limit is not None and took > limit:
        short.append(f"partition() took {took:.1f} s, expected {limit} s at most")
    return short


def _delegates_enough(found: int, expected: int) -> bool:
    # A delegate where none was expected is no loss; the numbers are checked too.
    return min(expected, 1) <= found <= max(expected, 1)


def _unexpected(found: tuple[str, ...], allowed: tuple[str, ...] | None) -> Counter:
    return Counter() if allowed is None else Counter(found) - Counter(allowed)


def _within(outcome: Outcome) -> bool:
    return (
        outcome.difference is not None
        and outcome.allowed is not None
        and outcome.difference <= outcome.allowed
    )


def _named_forward(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``fn`` under the name that export looks for in a stack trace.

    Nodes keep the lines of functions named ``forward`` alone, and the line that
    shows in a report should be the program's.

    """
    code = fn.__code__.replace(co_name="forward")
    return FunctionType(code, fn.__globals__, "forward", None, fn.__closure__)


class Model(torch.nn.Module):
    """A module from a function.

    Args:
        fn (Callable): ``fn(module, *inputs)`` is the forward pass.
        *layers (torch.nn.Module): Found as ``module.layers``.
        **tensors (torch.Tensor): Set as plain attributes, which export lifts as
            constants.

    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *layers: torch.nn.Module,
        **tensors: torch.Tensor,
    ) -> None:
        super().__init__()
        self.fn = _named_forward(fn)
        self.layers = torch.nn.ModuleList(layers)
        for name, tensor in tensors.items():
            setattr(self, name, tensor)
        self.eval()

    def forward(self, *inputs: Any) -> Any:
        return self.fn(self, *inputs)
