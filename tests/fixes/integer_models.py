# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Random models of int64 arithmetic whose inputs reach the ends of known ranges."""

from __future__ import annotations

from random import Random

import torch

SHAPES = ((2, 3), (1, 3), (2, 1), (3,))
ENDS = (0, 1, 2, 7, 100, 2**15, 46340, 2**24 + 1, 2**30, 2**31 - 1, 2**31, 2**40)


def constant(random: Random) -> int:
    value = random.choice((random.randint(0, 9), random.choice(ENDS)))
    return random.choice((value, -value))


def divisor(random: Random, x):
    """Something that is never zero."""
    return random.choice(
        (
            lambda: constant(random) or 3,
            lambda: x.abs().clamp(max=2**20) + 1,
            lambda: -1 - x.abs(),
        )
    )()


UNARY = (
    lambda random, x: -x,
    lambda random, x: x.abs(),
    lambda random, x: x.sign(),
    lambda random, x: x + constant(random),
    lambda random, x: constant(random) - x,
    lambda random, x: x * random.choice((2, 3, -1, -7, 1000, 2**16)),
    lambda random, x: x // (constant(random) or 1),
    lambda random, x: x % (constant(random) or 5),
    lambda random, x: torch.div(x, constant(random) or -3, rounding_mode="trunc"),
    lambda random, x: x.clamp(min=constant(random)),
    lambda random, x: x.clamp(max=constant(random)),
    lambda random, x: x.clamp(-random.choice(ENDS), random.choice(ENDS)),
    lambda random, x: x**2,
    lambda random, x: x & constant(random),
    lambda random, x: x | constant(random),
    lambda random, x: x ^ constant(random),
    lambda random, x: ~x,
    lambda random, x: x << random.randint(0, 9),
    lambda random, x: x >> random.randint(0, 9),
    lambda random, x: x.sum(-1, keepdim=True),
    lambda random, x: x.sum(),
    lambda random, x: x.cumsum(random.randrange(x.dim())) if x.dim() else x,
    lambda random, x: x.amax(-1, keepdim=True),
    lambda random, x: x.amin(0, keepdim=True) if x.dim() else x,
    lambda random, x: x.masked_fill(x > constant(random), random.choice((0, -3, 9))),
    lambda random, x: (x != constant(random)).long(),
    lambda random, x: (x >= constant(random)).cumsum(-1) if x.dim() else x,
    lambda random, x: x.flip(-1) if x.dim() else x,
    lambda random, x: torch.cat([x, x + 1], -1)[..., :1] if x.dim() else x,
    lambda random, x: torch.nn.functional.pad(x, (1, 0), value=5)[..., 1:],
    lambda random, x: x + torch.arange(x.shape[-1]) if x.dim() else x,
    lambda random, x: torch.full_like(x, 4) - x,
)
BINARY = (
    lambda random, x, y: x + y,
    lambda random, x, y: x - y,
    lambda random, x, y: x * y,
    lambda random, x, y: torch.add(x, y, alpha=random.choice((2, -3))),
    lambda random, x, y: x // divisor(random, y),
    lambda random, x, y: x % divisor(random, y),
    lambda random, x, y: torch.minimum(x, y),
    lambda random, x, y: torch.maximum(x, y),
    lambda random, x, y: torch.where(x < y, x, y + 1),
    lambda random, x, y: torch.where(x == y, x - 1, y),
    lambda random, x, y: x & y,
    lambda random, x, y: x ^ y,
    lambda random, x, y: x >> y.clamp(0, 31),
    lambda random, x, y: (x <= y).long() * 3,
)
SEEN = (
    lambda x: x,
    lambda x: x.to(torch.float32),
    lambda x: x.to(torch.int32),
    lambda x: x > 2,
    lambda x: x.to(torch.bool),
)


class IntegerModel(torch.nn.Module):
    """Some ops, chosen by a seed, on int32 inputs that are made int64.

    Args:
        seed (int): Chooses the ops, their constants and the ranges of the inputs.
        ops (int): How many.

    """

    def __init__(self, seed: int, ops: int) -> None:
        super().__init__()
        self.seed = seed
        self.ops = ops
        random = Random(seed)
        self.ranges = []
        for _ in range(random.randint(1, 3)):
            ends = sorted((constant(random), constant(random)))
            limits = torch.iinfo(torch.int32)
            self.ranges.append([min(max(e, limits.min), limits.max) for e in ends])
        self.shapes = [random.choice(SHAPES) for _ in self.ranges]

    def inputs(self, random: Random) -> tuple[torch.Tensor, ...]:
        """Return values of which most are ends of the ranges."""

        def draw(lo: int, hi: int) -> int:
            return random.choice((lo, hi, random.randint(lo, hi)))

        return tuple(
            torch.tensor(
                [draw(lo, hi) for _ in range(torch.Size(shape).numel())],
                dtype=torch.int32,
            ).reshape(shape)
            for (lo, hi), shape in zip(self.ranges, self.shapes)
        )

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        random = Random(self.seed)
        values = [x.clamp(*ends).long() for x, ends in zip(inputs, self.ranges)]
        for _ in range(self.ops):
            if random.random() < 0.6:
                value = random.choice(UNARY)(random, random.choice(values))
            else:
                x, y = random.choice(values), random.choice(values)
                value = random.choice(BINARY)(random, x, y)
            values.append(value)
        return tuple(random.choice(SEEN)(value) for value in values[len(inputs) :])
