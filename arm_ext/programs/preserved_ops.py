# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""An op that was kept whole and that the partitioner then leaves on the CPU."""

import torch
import torch.nn.functional as F
from arm_ext.programs._program import Expected, Gap, Model, U55

GAP = Gap(
    7,
    "preserved",
    "an op kept whole and then left on the CPU",
    fix="preserved-op-consistency",
)
EXACT = Expected(tolerance=0.0, steps=0.0)
PAD = "aten.constant_pad_nd.default"
BF16 = 2**-7  # one unit in the last place of numbers near one
CAST = "dim_order_ops._to_dim_order_copy.default"


def _cpu(*ops: str, tolerance: float = 0.0) -> Expected:
    """The kept op is decomposed into these, which run on the CPU."""
    return Expected(delegates=0, cpu_ops=ops, tolerance=tolerance)


# The decomposition has many ops, of which the target may take some.
RUNS = Expected(delegates=0, cpu_ops=None, tolerance=0.0)


def _pad(mode: str, dtype: torch.dtype):
    x = torch.randn(1, 4, 8).to(dtype)
    return Model(lambda m, x: F.pad(x, (1, 1), mode=mode) * 2), (x,)


@GAP.program("vgf", "vgf-fp", expected=EXACT, control=True)
def pad_float32():
    """A float32 pad."""
    return _pad("constant", torch.float32)


@GAP.program("vgf", "vgf-fp", expected=_cpu(PAD, CAST, "aten.mul.Tensor"))
def pad_bf16():
    """A bf16 pad, which has no kernel on the CPU."""
    return _pad("constant", torch.bfloat16)


@GAP.program("vgf-bf16", expected=EXACT, control=True)
def pad_bf16_with_extension():
    """The same where the target takes bf16."""
    return _pad("constant", torch.bfloat16)


@GAP.program("vgf", expected=RUNS)
def pad_reflect_bf16():
    """A bf16 pad that reflects."""
    return _pad("reflect", torch.bfloat16)


@GAP.program("vgf", expected=RUNS)
def pad_circular_bf16():
    """A bf16 pad that wraps around."""
    return _pad("circular", torch.bfloat16)


@GAP.program("vgf", expected=_cpu(PAD))
def pad_token_ids():
    """An int64 pad."""
    ids = torch.arange(8).reshape(1, 8)
    return Model(lambda m, x: F.pad(x, (1, 1))), (ids,)


@GAP.program("vgf", expected=_cpu(PAD))
def pad_image():
    """A uint8 pad."""
    image = torch.randint(0, 255, (1, 3, 8, 8), dtype=torch.uint8)
    return Model(lambda m, x: F.pad(x, (1, 1))), (image,)


@GAP.program("vgf", "ethos-u85-256", expected=_cpu(PAD))
def pad_rank_7():
    """A pad of rank 7."""
    return Model(lambda m, x: F.pad(x, (1, 1))), (torch.randn(1, 1, 1, 1, 2, 2, 8),)


@GAP.program("vgf", "ethos-u85-256", U55, expected=EXACT)
def crop():
    """A negative pad."""
    return Model(lambda m, x: F.pad(x, (-1, 1)) * 2), (torch.randn(2, 8),)


@GAP.program("vgf", "ethos-u85-256", expected=_cpu(PAD))
def pad_int8():
    """A pad of plain int8."""
    x = torch.arange(16, dtype=torch.int8).reshape(2, 8)
    return Model(lambda m, x: F.pad(x, (1, 1))), (x,)


@GAP.program("vgf", expected=_cpu("aten.elu.default"))
def selu_bf16():
    """A bf16 SELU."""
    x = torch.randn(4, 8, dtype=torch.bfloat16)
    return Model(lambda m, x: F.selu(x)), (x,)


@GAP.program("vgf", expected=Expected(cpu_ops=(CAST, CAST), tolerance=BF16))
def celu_bf16():
    """A bf16 CELU, which makes a ``.pte`` that no runtime loads."""
    x = torch.randn(4, 8, dtype=torch.bfloat16)
    return Model(lambda m, x: F.celu(x)), (x,)


@GAP.program("vgf")
def logit_int32():
    """``logit`` of integers."""
    x = torch.tensor([0, 1, 1, 0], dtype=torch.int32)
    return Model(lambda m, x: torch.logit(x, eps=0.25)), (x,)


@GAP.program("vgf")
def computed_weight():
    """A linear whose weight is computed at run time."""
    model = Model(lambda m, x, w: F.linear(x, w * 2))
    return model, (torch.randn(4, 8), torch.randn(6, 8))


@GAP.program("vgf", expected=_cpu("aten.add.Tensor"))
def add_int8():
    """An addition of plain int8."""
    x = torch.arange(8, dtype=torch.int8)
    return Model(lambda m, x, y: x + y), (x, x.flip(0).contiguous())


@GAP.program("vgf-fp", expected=_cpu("aten.clamp.default"))
def clamp_int32():
    """A clamp of integers where the target has none."""
    x = torch.arange(-4, 4, dtype=torch.int32)
    return Model(lambda m, x: x.clamp(-2, 2)), (x,)


@GAP.program("ethos-u85-256", expected=_cpu("aten.sigmoid.default", "aten.mul.Tensor"))
def silu_rank_7():
    """A quantized SiLU of rank 7."""
    return Model(lambda m, x: F.silu(x)), (torch.randn(1, 1, 1, 1, 2, 2, 8),)
