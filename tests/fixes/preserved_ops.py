# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Every op in the lists of ops to keep, in every dtype and rank.

The programs of one op are bundled into one module with an input and an output
each, because they do not touch each other: one export and one lowering walk
all of them.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

aten = torch.ops.aten

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int32, torch.int64)
DTYPES = (*FLOATS, *INTEGERS, torch.bool)
RANKS = range(8)
_SHAPE = (2, 1, 3, 1, 2, 5, 6)


@dataclass(frozen=True)
class Program:
    """One op on inputs of one dtype and rank."""

    name: str
    run: Callable[..., torch.Tensor]
    inputs: tuple[torch.Tensor, ...]


class Bundle(torch.nn.Module):
    """Runs programs side by side."""

    def __init__(self, programs: Sequence[Program]) -> None:
        super().__init__()
        self.programs = tuple(programs)

    @property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        return tuple(value for program in self.programs for value in program.inputs)

    def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs, start = [], 0
        for program in self.programs:
            end = start + len(program.inputs)
            outputs.append(program.run(*values[start:end]))
            start = end
        return tuple(outputs)


def tensor(dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    """Return distinct values in [0.05, 0.95], or small integers."""
    count = math.prod(shape)
    generator = torch.Generator().manual_seed(count)
    order = torch.randperm(count, generator=generator).reshape(tuple(shape))
    if dtype.is_floating_point:
        return (0.05 + 0.9 * order / max(count, 1)).to(dtype)
    return (order % 2 if dtype is torch.bool else order % 11).to(dtype)


def of_rank(dtype: torch.dtype, rank: int) -> torch.Tensor:
    return tensor(dtype, _SHAPE[len(_SHAPE) - rank :])


def _unary(name: str, run: Callable) -> Iterator[Program]:
    for dtype in DTYPES:
        for rank in RANKS:
            yield Program(f"{name} {dtype} rank {rank}", run, (of_rank(dtype, rank),))


def _pad(name: str, pads: Sequence[int], mode: str, value: Any = None) -> Iterator:
    def run(x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, pads, mode=mode, value=value)

    return _unary(f"pad {name} {mode}", run)


def _linear(dtype: torch.dtype, rank: int) -> Iterator[Program]:
    x, weight, bias = of_rank(dtype, rank), tensor(dtype, (4, 6)), tensor(dtype, (4,))
    name = f"linear {dtype} rank {rank}"
    yield Program(f"{name}, constants", lambda x: F.linear(x, weight, bias), (x,))
    if rank not in (1, 3):
        return
    yield Program(f"{name}, weight an input", F.linear, (x, weight))
    yield Program(
        f"{name}, weight computed", lambda x, w: F.linear(x, w + w), (x, weight)
    )
    yield Program(f"{name}, all inputs", F.linear, (x, weight, bias))
    yield Program(f"{name}, no bias", lambda x: F.linear(x, weight), (x,))


def _factories() -> Iterator[Program]:
    for dtype in DTYPES:
        one = torch.ones((), dtype=dtype)
        for n, m in ((3, 3), (2, 5), (1, 1)):
            yield Program(
                f"eye {n} {m} {dtype}",
                lambda x, n=n, m=m: torch.eye(n, m, dtype=x.dtype) * x,
                (one,),
            )
        if dtype is torch.bool:
            continue
        for start, end, steps in ((0, 1, 5), (-3, 9, 4), (2, 2, 1)):
            if start < 0 and dtype is torch.uint8:
                continue
            yield Program(
                f"linspace {start} {end} {steps} {dtype}",
                lambda x, a=start, b=end, n=steps: torch.linspace(
                    a, b, n, dtype=x.dtype
                )
                + x,
                (one,),
            )


def _upsample(mode: str) -> Iterator[Program]:
    for dtype in FLOATS:  # the portable kernel rounds uint8 in its own way
        x = tensor(dtype, (1, 2, 4, 6))
        for scale in (2, 1.5, 3):
            yield Program(
                f"upsample {mode} {scale} {dtype}",
                lambda x, s=scale: F.interpolate(x, scale_factor=s, mode=mode),
                (x,),
            )


def _grid_sampler() -> Iterator[Program]:
    for dtype in FLOATS:
        x, grid = tensor(dtype, (1, 2, 4, 6)), tensor(dtype, (1, 3, 5, 2)) * 2 - 1
        yield Program(
            f"grid_sampler {dtype}",
            lambda x, g: F.grid_sample(x, g, align_corners=False),
            (x, grid),
        )


def _all(op: Any) -> Iterator[Program]:
    if op in (aten.eye.default, aten.linspace.default):
        name = op._schema.name.split("::")[1]
        yield from (p for p in _factories() if p.name.startswith(name))
    elif op is aten.linear.default:
        for dtype in DTYPES:
            for rank in RANKS:
                yield from _linear(dtype, rank)
    elif op is aten.pad.default:
        yield from _pad("0 2 1 0", (0, 2, 1, 0), "constant", 3)
        yield from _pad("crop", (-1, -2), "constant")
        yield from _pad("crop and pad", (2, -1), "constant", 1)
        for mode in ("reflect", "replicate", "circular"):
            yield from _pad("2 1", (2, 1), mode)
            yield from _pad("1 0 0 2", (1, 0, 0, 2), mode)
        yield from _pad("crop and pad", (-1, 1), "replicate")
    elif op is aten.upsample_nearest2d.vec:
        yield from _upsample("nearest")
    elif op is aten.upsample_bilinear2d.vec:
        yield from _upsample("bilinear")
    elif op is aten.grid_sampler_2d.default:
        yield from _grid_sampler()
    else:
        yield from _unary(op._schema.name.split("::")[1], op)


OPS = (
    aten.celu.default,
    aten.eye.default,
    aten.grid_sampler_2d.default,
    aten.hardsigmoid.default,
    aten.hardswish.default,
    aten.linear.default,
    aten.linspace.default,
    aten.logit.default,
    aten.pad.default,
    aten.selu.default,
    aten.silu.default,
    aten.upsample_bilinear2d.vec,
    aten.upsample_nearest2d.vec,
)


def programs(op: Any) -> list[Program]:
    """Return the programs of an op that eager PyTorch runs."""
    return [program for program in _all(op) if _runs(program)]


def _runs(program: Program) -> bool:
    try:
        program.run(*program.inputs)
    except (RuntimeError, IndexError, ValueError):
        return False
    return True
