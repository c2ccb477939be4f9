# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""int64 arithmetic: on indices, positions, counts and token ids."""

import torch
from arm_ext.programs._program import Expected, FLOAT, Gap, INTEGER, Model

GAP = Gap(4, "int64-math", "int64 arithmetic stays on the CPU", fix="int64-arithmetic")
CAST = "dim_order_ops._to_dim_order_copy.default"
EXACT = Expected(tolerance=0.0, steps=0.0)


def _exact(*cpu_ops: str) -> Expected:
    return Expected(cpu_ops=cpu_ops, tolerance=0.0, steps=0.0)


@GAP.program("vgf", expected=EXACT)
def remainder():
    """``argmax % 7``."""
    model = Model(lambda m, x: (x.argmax(-1) % 7).to(torch.float32))
    return model, (torch.randn(64, 16),)


@GAP.program("vgf", expected=EXACT)
def floor_division():
    """``argmax // 3 + 1``."""
    model = Model(lambda m, x: (x.argmax(-1) // 3 + 1).to(torch.float32))
    return model, (torch.randn(64, 16),)


@GAP.program("vgf", *INTEGER, expected=_exact(CAST))
def negative_divisors():
    """Remainders and quotients of negative numbers, constant and tensor divisors."""

    def forward(m, x):
        i, j = x.argmax(-1) - 8, x.argmin(-1) + 1
        return torch.stack([i % 7, i % -7, i // 3, i // -3, i % j, i // j, i % -j])

    return Model(forward), (torch.randn(64, 16),)


@GAP.program("vgf", *INTEGER, expected=_exact())
def computed_index():
    """``x[:, i]`` and ``x[i]`` with an index that is computed."""

    def forward(m, x):
        return x[:, (x.argmax(0) * 2 + 1) % 16], x[x.argmin(0) // 2]

    return Model(forward), (torch.randn(64, 16),)


@GAP.program("vgf", expected=Expected(cpu_ops=(CAST,)))
def tokens():
    """Embeddings of token ids, of their positions and of a count from a mask."""

    def forward(m, ids):
        word, position = m.layers
        counted = ((ids != 0).cumsum(-1) - 1).clamp(min=0)
        return word(ids) + position(torch.arange(10)) + position(counted)

    layers = torch.nn.Embedding(16, 8), torch.nn.Embedding(10, 8)
    return Model(forward, *layers), (torch.randint(0, 16, (2, 10)),)


@GAP.program(*FLOAT, expected=Expected(tolerance=1e-6))
def causal_mask():
    """A mask from ``arange``, put on scores."""

    def forward(m, x):
        place = torch.arange(16)
        return x.masked_fill(place[None, :] > place[:, None], -1e4).softmax(-1)

    return Model(forward), (torch.randn(2, 16, 16),)


@GAP.program("vgf", expected=_exact(CAST, "aten.mul.Tensor"))
def beyond_int32():
    """``argmax * 2**30``, which stays an int64."""
    return Model(lambda m, x: x.argmax(-1) * 2**30), (torch.randn(64, 16),)
