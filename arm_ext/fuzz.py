# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Random small programs, lowered and compared with eager PyTorch.

What comes out of a lowering is right, or a node is on the CPU and the partitioner says
why. Anything else is a :class:`Finding`: an exception, a crash, a wrong number, a node
without a reason. Programs are chains and branches of a few ops from the backend's
support lists, on tensors of rank 1 to 4.

A number is wrong if it is further from eager's than errors that the formats allow move
it. What a step of quantization, or the last digit of a 16-bit float, in each op comes
to at the outputs is measured: eager is run with such errors put in.

"""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from arm_ext import verify
from arm_ext.coverage import coverage, reject_reasons
from arm_ext.targets import lower, quantize, TARGETS
from torch.export import Dim
from torch.utils._pytree import tree_leaves

# The target, the dtype and the quantization; None leaves the program in its dtypes.
SETTINGS = (
    ("vgf-fp", torch.float32, None),
    ("vgf", torch.float32, None),
    ("vgf-fp", torch.float16, None),
    ("vgf-bf16", torch.bfloat16, None),
    ("vgf-int", torch.float32, "int8"),
    ("ethos-u85-256", torch.float32, "int8"),
    ("ethos-u55-128", torch.float32, "int8"),
    ("ethos-u85-256", torch.float32, "a16w8"),
)
_SECONDS = 120  # for one program
_PERTURBED_RUNS = 8

# Expressions of x (and y) by what they need. ``exact`` ones jump: only on values that
# are the same to the last bit in the delegate.
_SMOOTH = """
abs(x)|neg(x)|tanh(x)|sigmoid(x)|relu(x)|erf(x)|sin(x)|cos(x)|atan(x)|asinh(x)
F.hardsigmoid(x)|F.hardswish(x)|F.hardtanh(x)|F.leaky_relu(x)|F.gelu(x)|F.elu(x)
F.selu(x)|F.celu(x)|F.silu(x)|F.mish(x)|exp(x.clamp(-4, 4))|expm1(x.clamp(-4, 4))
log(x.abs() + 0.5)|log1p(x.abs())|log10(x.abs() + 0.5)|rsqrt(x.abs() + 0.5)
sqrt(x.abs() + 0.1)|reciprocal(x.abs() + 0.5)|sinh(x.clamp(-3, 3))
cosh(x.clamp(-3, 3))|asin(x.clamp(-0.9, 0.9))|acos(x.clamp(-0.9, 0.9))
atanh(x.clamp(-0.9, 0.9))|erfinv(x.clamp(-0.9, 0.9))|acosh(x.abs() + 1.5)
log1p(x.clamp(-0.9, 9))|asinh(x * 1000)|log_softmax(x * 50, -1)
tan(x.clamp(-1, 1))|logit(x.clamp(0.1, 0.9))|pow(x.abs() + 0.5, 1.5)|square(x)
x + 1.5|x * 0.5|x - 2.0|x / 3.0|clamp(x, -1.0, 1.0)|x.mean(-1)|x.mean(0, keepdim=True)
x.sum(0)|x.sum(-1, keepdim=True)|x.amax(-1)|x.amin(0, keepdim=True)|x.var(-1)
x.clamp(0.5, 1.5).prod(-1)|x.cumsum(-1)|softmax(x, -1)|log_softmax(x, 0)
x + y|x - y|x * y|maximum(x, y)|minimum(x, y)|x / (y.abs() + 0.5)
F.layer_norm(x, x.shape[-1:])|F.linear(x, W(5, x.shape[-1]), W(5))
x @ W(x.shape[-1], 3)|matmul(x, x.transpose(-1, -2))|F.glu(cat([x, x]), 0)
F.conv1d(x, W(4, x.shape[1], 1))|F.conv2d(x, W(4, x.shape[1], 2, 2), padding=1)
F.conv2d(x, W(x.shape[1], 1, 1, 1), groups=x.shape[1])|F.group_norm(x, 1)
F.conv_transpose2d(x, W(x.shape[1], 2, 2, 2), stride=2)|F.avg_pool2d(x, 2, padding=1)
F.max_pool2d(x, 2, padding=1)|F.adaptive_avg_pool2d(x, 1)|F.interpolate(x, scale_factor=2)
""".replace("\n", "|")
_MOVES = """
x.flip(0)|x.transpose(0, -1)|x.unsqueeze(1)|x.squeeze()|x.flatten()|x.repeat(2, *[1] * (x.dim() - 1))
x.unsqueeze(0).expand(2, *x.shape)|x[1:]|x[..., :2]|x.select(-1, 0)|x[::2]|x.clone()
F.pad(x, (1, 2))|F.pad(x, (0, 1), value=1)|cat([x, y])|cat([x, x], -1)|stack([x, y])
x.split(2)[0]|x.chunk(2, -1)[-1]|x[tensor([0, -1])]|slice_scatter(x, x[:1] , 0, 0, 1)
""".replace("\n", "|")
_EXACT = """
floor(x)|ceil(x)|round(x)|round(floor(x) / 2)|sign(x)|where(x > y, x, y)|(x > 0.5)|(x >= y)|(x == y)|(x < y)
(x <= 0.0)|(x != 0.0)|x.argmax(-1)|x.argmin(0)|x.topk(1)[0]|masked_fill(x, x > 0, 0.5)
remainder(x, 3.0)|(x > y).any()|((x > 0) & (y > 0))|((x > 0) ^ (y < 0))|~(x > 0)
""".replace("\n", "|")
_INTEGER = """
x + y|x - y|x * 3|abs(x)|neg(x)|maximum(x, y)|minimum(x, y)|x & y|x \\| y|x ^ y|~x
x % 7|x // 3|x > y|x == y|where(x > y, x, y)|x.amax(-1)|x.clamp(-5, 5)|x.sum(-1)
bitwise_left_shift(x, 1)|x.float()|x.argmax(-1)
"""


def _split(text: str) -> list[str]:
    parts = re.split(r"(?<!\\)\|", text.replace("\n", "|"))
    return [part.strip().replace("\\|", "|") for part in parts if part.strip()]


OPERATIONS = {
    "smooth": _split(_SMOOTH),
    "moves": _split(_MOVES),
    "exact": _split(_EXACT),
    "integer": _split(_INTEGER),
}


@dataclass(frozen=True)
class Step:
    """One op: an expression of ``x`` and ``y``, which are earlier values."""

    expression: str
    x: int
    y: int


@dataclass(frozen=True)
class Program:
    """A random program and where it is lowered to.

    Attributes:
        seed (int): What its inputs and weights are drawn from.
        shape (tuple[int, ...]): Of its two inputs.
        dtype (torch.dtype): Of its two inputs.
        steps (tuple[Step, ...]): Values 0 and 1 are the inputs, the others follow.
        target (str): A name in ``arm_ext.targets.TARGETS``.
        quantization (str | None): A name in ``arm_ext.targets.QUANTIZATION``.
        dynamic (bool): Whether the first dimension has any size. The reference model
            does not execute that, so only the lowering is tested.

    """

    seed: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    steps: tuple[Step, ...]
    target: str
    quantization: str | None
    dynamic: bool = False

    def inputs(self) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(self.seed)
        a, b = (torch.randn(self.shape, generator=generator) * 2 for _ in range(2))
        return a.to(self.dtype), b.to(self.dtype)

    def module(self) -> torch.nn.Module:
        return _Module(self)

    def export_options(self) -> dict[str, Any]:
        size = {0: Dim.AUTO}
        return {"dynamic_shapes": (size, size)} if self.dynamic else {}

    def outputs(self) -> list[int]:
        """Return the values that nothing reads."""
        read = {value for step in self.steps for value in _reads(step)}
        return [i for i in range(2, len(self.steps) + 2) if i not in read]

    def source(self) -> str:
        """Return a script that lowers the program and prints both results."""
        return (
            "import torch\n"
            "from arm_ext import fuzz\n\n"
            f"program = fuzz.{self!r}\n".replace("Step(", "fuzz.Step(")
            + "print(fuzz.check(program))\n"
        )


def _reads(step: Step) -> tuple[int, ...]:
    return (step.x, step.y) if re.search(r"\by\b", step.expression) else (step.x,)


class _Module(torch.nn.Module):
    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.weights = torch.nn.ParameterList()
        self._code = [compile(s.expression, "fuzz", "eval") for s in program.steps]
        self._outputs = program.outputs()
        self._making = True
        with torch.no_grad():
            self(*program.inputs())
        self._making = False
        self.eval()

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = [a, b]
        weights = iter(self.weights)
        for step, code in zip(self.program.steps, self._code):
            names = {
                "x": values[step.x],
                "y": values[step.y],
                "W": lambda *shape: self._weight(shape, weights),
            }
            values.append(eval(code, _NAMES, names))
        return tuple(values[i] for i in self._outputs)

    def _weight(self, shape: Sequence[int], weights: Iterator) -> torch.Tensor:
        if not self._making:
            return next(weights)
        generator = torch.Generator().manual_seed(len(self.weights))
        weight = torch.randn(shape, generator=generator) / 2
        dtype = self.program.dtype
        self.weights.append(weight.to(dtype) if dtype.is_floating_point else weight)
        return self.weights[-1]


_NAMES = {**vars(torch), "F": torch.nn.functional}


@dataclass(frozen=True)
class Finding:
    """A program that neither lowers right nor says why not.

    Attributes:
        program (Program): The program.
        what (str): What went wrong, in a line.

    """

    program: Program
    what: str

    @property
    def kind(self) -> str:
        """What two findings have in common that have one reason."""
        return re.sub(r"[\d.]+|_\w+", "#", f"{self.program.target} {self.what}")[:100]


# Findings that no fix closes, and why.
KNOWN = (
    (
        r"avg_pool2d.* values to unpack \(expected 4",
        "prepare_pt2e takes no avg_pool2d of another rank than 4",
    ),
    (
        r"\ba(sin|cos)\(.*: wrong by 0\.00",
        "the backend computes asin and acos by polynomials, which are off by 0.0013",
    ),
    (
        r"^a16w8 .*_norm\(.*: wrong by",
        "a TABLE of 16 bits has 513 points, and rsqrt of a variance near 0 is between two",
    ),
    (
        r": torch.int64 \[\], eager torch.int32 \[\]",
        "to_edge computes a 0-dim int32 tensor and a Python number in int64",
    ),
)


def why_known(finding: Finding) -> str | None:
    """Return why nothing is done about a finding; None if nobody knows it yet."""
    ops = " ".join(step.expression for step in finding.program.steps)
    text = f"{finding.program.quantization} {ops}: {finding.what}"
    return next((why for what, why in KNOWN if re.search(what, text)), None)


def generate(seed: int) -> Program:
    """Return a random program; the same one for the same seed."""
    choose = random.Random(seed)
    target, dtype, quantization = choose.choice(SETTINGS)
    integer = choose.random() < 0.2
    dynamic = choose.random() < 0.1 and target.startswith("vgf")
    program = Program(
        seed,
        tuple(choose.choice((1, 2, 3, 4, 5, 8)) for _ in range(choose.randint(1, 4))),
        torch.int32 if integer else dtype,
        (),
        target,
        None if integer else quantization,
        dynamic,
    )
    exact, length = [True, True], choose.randint(1, 5)
    for _ in range(200):
        if len(program.steps) == length:
            break
        values = range(len(program.steps) + 2)
        x, y = choose.choice(values), choose.choice(values)
        kind = choose.choice(_kinds(program, exact[x] and exact[y]))
        step = Step(choose.choice(OPERATIONS[kind]), x, y)
        longer = replace(program, steps=(*program.steps, step))
        if _is_sound(longer):
            program = longer
            exact.append(kind != "smooth" and exact[x] and exact[y])
    return program


def _kinds(program: Program, exact: bool) -> list[str]:
    if program.dtype is torch.int32:
        return ["integer", "integer", "moves"]
    if exact and program.quantization is None:
        return ["smooth", "smooth", "moves", "exact"]
    return ["smooth", "smooth", "moves"]


def _is_sound(program: Program) -> bool:
    """Whether eager PyTorch runs it, to small tensors of moderate numbers."""
    try:
        outputs = program.module()(*program.inputs())
    except (RuntimeError, IndexError, ValueError, TypeError):
        return False
    return all(
        isinstance(value, torch.Tensor)
        and 0 < value.numel() <= 4096
        and value.dim() <= 5
        and value.double().abs().max() < 1e3
        for value in outputs
    )


def check(program: Program) -> str | None:
    """Lower and run a program; return what is wrong, None if nothing is."""
    inputs = program.inputs()
    module: Any = program.module()
    target = TARGETS[program.target]
    options = program.export_options()
    try:
        torch.export.export(module, inputs, **options)
    except Exception:
        return None  # not the backend's
    try:
        with warnings.catch_warnings(), torch.no_grad(), reject_reasons():
            warnings.simplefilter("ignore")
            if program.quantization:
                module = quantize(module, inputs, target, program.quantization)
            edge = lower(module, inputs, target, **options)
            left = coverage(edge).compute_left
            edge.to_executorch()
            wanted = tree_leaves(module(*inputs))
            got = wanted if program.dynamic else tree_leaves(verify.run(edge, *inputs))
            allowed = _allowed(program, module, wanted)
    except (Exception, SystemExit) as error:
        return _said(error)
    silent = sorted({op.op for op in left if not op.reasons})
    if silent:
        return f"no reason for {', '.join(silent)} on the CPU"
    return next(filter(None, map(_wrong, got, wanted, allowed)), None)


def _said(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


class _Perturbed(torch.fx.Interpreter):
    """Runs a program with an error in each op: a quantization step, or a last digit."""

    def __init__(self, module: torch.fx.GraphModule, seed: int, digit: float) -> None:
        super().__init__(module)
        self._generator = torch.Generator().manual_seed(seed)
        self._digit = digit

    def call_function(self, target: Any, args: tuple, kwargs: dict) -> Any:
        value = super().call_function(target, args, kwargs)
        if not isinstance(value, torch.Tensor):
            return value
        steps = torch.randint(-1, 2, value.shape, generator=self._generator)
        name = getattr(target, "__name__", "")
        if name.startswith("quantize_"):
            lowest, highest = args[-3:-1]
            return (value + steps).clamp(lowest, highest).to(value.dtype)
        if value.dtype.is_floating_point and not name.startswith("dequantize_"):
            return value * (1 + self._digit * steps).to(value.dtype)
        return value


def _allowed(
    program: Program, module: torch.nn.Module, wanted: Sequence[torch.Tensor]
) -> list[float]:
    """Return how far each output may be from eager's."""
    sizes = [value.double().abs().max().item() for value in wanted]
    if program.dtype is torch.int32:
        return [1e-4 for _ in sizes]
    if program.dtype is torch.float32 and not program.quantization:
        return [1e-3 * size + 1e-4 for size in sizes]
    inputs = program.inputs()
    digit = 0.0 if program.quantization else 2 * torch.finfo(program.dtype).eps
    if not isinstance(module, torch.fx.GraphModule):
        module = torch.export.export(module, inputs).module()
    # A TABLE of 16 bits interpolates between 513 points, on either side of a clamp.
    table = 0.02 if program.quantization == "a16w8" else 0.0
    moved = [0.0 for _ in sizes]
    for seed in range(_PERTURBED_RUNS):
        outputs = tree_leaves(_Perturbed(module, seed, digit).run(*inputs))
        moved = list(map(max, moved, map(_distance, outputs, wanted)))
    # The difference of two equal numbers is off by some digits of these.
    floor = digit / 16 + 1e-6
    return [2 * far + (digit + table) * size + floor for far, size in zip(moved, sizes)]


def _distance(a: torch.Tensor, b: torch.Tensor) -> float:
    return (a.double() - b.double()).abs().max().item()


def _wrong(got: torch.Tensor, wanted: torch.Tensor, allowed: float) -> str | None:
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        return (
            f"{got.dtype} {list(got.shape)}, eager {wanted.dtype} {list(wanted.shape)}"
        )
    if not wanted.isfinite().all():
        return None
    error = _distance(got, wanted)
    if error <= allowed:
        return None
    size = wanted.double().abs().max().item()
    return f"wrong by {error:.3g} of {size:.3g}, {allowed:.2g} is expected"


def check_apart(program: Program) -> str | None:
    """Return ``check(program)`` from a process of its own, which may crash."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_check_and_send, args=(program, send))
    process.start()
    send.close()
    said = receive.poll(_SECONDS)
    try:
        return receive.recv() if said else f"takes longer than {_SECONDS} s"
    except EOFError:
        process.join()
        return f"the process ends with {process.exitcode}"
    finally:
        process.kill()
        process.join()


def _check_and_send(program: Program, send: Any) -> None:
    # Of the threads that the parent computed with, none lives on after a fork.
    torch.set_num_threads(1)
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):  # the compilers and the reference model write there
        os.dup2(null, descriptor)
    send.send(check(program))


def findings(seconds: float, seed: int) -> Iterator[Finding | None]:
    """Yield what is found in programs from ``seed`` on, None for each that is right.

    Each kind of finding is yielded once, with the smallest program that has it.

    """
    known: set[str] = set()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        program = generate(seed)
        seed += 1
        what = check_apart(program) if program.steps else None
        finding = Finding(program, what) if what else None
        if finding and finding.kind not in known and not why_known(finding):
            known.add(finding.kind)
            yield smallest(finding, check_apart)
        else:
            yield None


def smallest(finding: Finding, check: Callable[[Program], str | None]) -> Finding:
    """Return the finding with as few steps as have it."""
    for index in reversed(range(len(finding.program.steps))):
        smaller = _without(finding.program, index)
        what = check(smaller) if smaller else None
        if smaller and what and Finding(smaller, what).kind == finding.kind:
            return smallest(Finding(smaller, what), check)
    return finding


def _without(program: Program, index: int) -> Program | None:
    """Return the program with the readers of a step reading what the step reads."""
    removed = program.steps[index]

    def moved(value: int) -> int:
        if value == index + 2:
            value = removed.x
        return value - (value > index + 2)

    steps = [
        replace(step, x=moved(step.x), y=moved(step.y))
        for i, step in enumerate(program.steps)
        if i != index
    ]
    smaller = replace(program, steps=tuple(steps))
    return smaller if steps and _is_sound(smaller) else None
