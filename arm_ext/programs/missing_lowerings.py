# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Ops without a TOSA lowering, which split the graph."""

from dataclasses import replace

import torch
from arm_ext.programs._program import Expected, Gap, Model, U55

CONV = Gap(
    4, "conv-transpose1d", "ConvTranspose1d stays on the CPU", fix="conv-transpose1d"
)
ARG = Gap(4, "argmin", "argmin and most of argmax stay on the CPU", fix="argmin-argmax")
TOPK = Gap(4, "topk", "topk stays on the CPU", fix="topk")
TESTS = Gap(
    0,
    "isnan-isinf-fmod",
    "isnan, isinf and fmod stay on the CPU",
    fix="isnan-isinf-fmod",
)
ROLL = Gap(
    0, "roll-and-triangle", "roll and triu stay on the CPU", fix="roll-and-triangle"
)
CONSTANTS = Gap(
    0,
    "float64-and-constants",
    "constant pow, masks and float64 stay on the CPU",
    fix="float64-and-constants",
)
SLICES = Gap(
    0, "slice-writes", "a tensor filled in slices goes wrong", fix="slice-writes"
)
WHERE = Gap(
    0, "where-number", "where with a number stays on the CPU", fix="where-number"
)
NORM = Gap(0, "strided-norm", "a view behind a strided norm throws", fix="strided-norm")
GATHER = Gap(
    0, "flatten-gather", "gather of rank 4 stays on the CPU", fix="flatten-gather"
)
NO_GRAD = Gap(
    0, "no-grad-regions", "no_grad keeps from quantizing", fix="no-grad-regions"
)
EXTREMUM = Gap(
    0, "int64-extremum", "min and max of int64 stay on the CPU", fix="int64-extremum"
)
ACCURACY = Gap(
    0, "float-accuracy", "asinh, log1p and round go wrong", fix="float-accuracy"
)
CAST = Gap(
    0, "float-to-int-cast", "a cast to int8 or int16 rounds", fix="float-to-int-cast"
)
NEG = Gap(0, "neg-scale", "a quantized neg is scaled wrong", fix="neg-scale")
DUPLICATES = Gap(
    0, "duplicate-qparams", "equal ops lose their scale", fix="duplicate-qparams"
)
VIEWS = Gap(
    0, "views-and-joins", "hstack, mT and others are in float", fix="views-and-joins"
)
INT_CAST = Gap(
    0,
    "int-to-float-cast",
    "an integer that is quantized splits the graph",
    fix="int-to-float-cast",
)
EXACT = Expected(tolerance=0.0, steps=0.0)
INT64_OUTPUT = replace(EXACT, cpu_ops=("dim_order_ops._to_dim_order_copy.default",))


@CONV.program("vgf", "ethos-u85-256")
def stride_two():
    """The upsampling of a Diffusion Policy's U-Net."""
    model = torch.nn.ConvTranspose1d(16, 8, 4, stride=2, padding=1).eval()
    return model, (torch.randn(1, 16, 32),)


@CONV.program("vgf-bf16", expected=Expected(tolerance=0.02))
def bfloat16():
    """The same in bf16, which accumulates in fp32."""
    model, (x,) = stride_two()
    return model.to(torch.bfloat16), (x.to(torch.bfloat16),)


@CONV.program("vgf-int", U55)
def stride_three():
    """Stride 3 between two Conv1d, which Ethos-U55 takes with zeros inserted."""
    layers = (
        torch.nn.Conv1d(16, 16, 3),
        torch.nn.ConvTranspose1d(16, 8, 5, stride=3, output_padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv1d(8, 8, 3),
    )
    return torch.nn.Sequential(*layers).eval(), (torch.randn(1, 16, 32),)


@CONV.program("vgf", "ethos-u85-256", U55)
def depthwise_and_dilated():
    """Four groups and a dilated kernel."""
    options = {"stride": 2, "groups": 4, "dilation": 2, "output_padding": 1}
    model = torch.nn.ConvTranspose1d(16, 8, 3, **options).eval()
    return model, (torch.randn(2, 16, 32),)


@CONV.program("ethos-u85-256", U55, quantization="a16w8")
def sixteen_bit():
    """Stride 2 with 16 bit activations."""
    return stride_two()


@CONV.program("vgf", control=True)
def two_dimensions_for_comparison():
    """The same as ConvTranspose2d."""
    model = torch.nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1).eval()
    return model, (torch.randn(1, 16, 32, 1),)


@ARG.program("vgf", expected=EXACT, control=True)
def argmax_for_comparison():
    """``argmax`` cast to int32."""
    model = Model(lambda m, x: x.argmax(-1).to(torch.int32))
    return model, (torch.randn(64, 16),)


@ARG.program("vgf", "ethos-u85-256", expected=EXACT)
def argmin():
    """``argmin`` cast to int32."""
    model = Model(lambda m, x: x.argmin(-1).to(torch.int32))
    return model, (torch.randn(64, 16),)


@ARG.program("ethos-u85-256", expected=EXACT)
def argmax():
    """``argmax`` of a quantized tensor."""
    model = Model(lambda m, x: x.argmax(-1).to(torch.int32))
    return model, (torch.randn(64, 16),)


@ARG.program("vgf", "ethos-u85-256", U55, expected=INT64_OUTPUT)
def int64_output():
    """``argmin`` of all elements, as the int64 that it is."""
    return Model(lambda m, x: x.argmin()), (torch.randn(4, 16),)


@ARG.program("vgf", "ethos-u85-256", expected=EXACT)
def row_picked():
    """Rows picked by ``argmax``."""
    return Model(lambda m, x: x[x.argmax(0)]), (torch.randn(16, 16),)


@TOPK.program("vgf", "ethos-u85-256", expected=EXACT)
def values():
    """The eight largest of a [64, 16] score."""
    return Model(lambda m, x: x.topk(8).values), (torch.randn(64, 16),)


@TOPK.program("vgf", "ethos-u85-256", expected=INT64_OUTPUT)
def sorted_with_indices():
    """All of a row in order, and where each was."""
    return Model(lambda m, x: tuple(x.sort(stable=True))), (torch.randn(4, 32),)


@TOPK.program("vgf", "ethos-u85-256", expected=EXACT)
def rows_picked():
    """Rows picked by topk indices."""
    model = Model(lambda m, x: x[x.sum(-1).topk(8).indices])
    return model, (torch.randn(64, 16),)


@TESTS.program("vgf", "vgf-fp", expected=EXACT)
def infinities_and_nan_replaced():
    """``nan_to_num``, and a guard with ``isinf``."""
    model = Model(lambda m, x: torch.where(x.isinf(), 0, x).nan_to_num(1.0))
    x = torch.randn(4, 8)
    x[0, 0], x[1, 1], x[2, 2] = torch.nan, torch.inf, -torch.inf
    return model, (x,)


@TESTS.program("vgf", "vgf-fp", expected=EXACT)
def angle_wrapped():
    """``fmod`` by 2 pi, and by 1."""
    model = Model(lambda m, x: (torch.fmod(x, 2 * torch.pi), torch.fmod(x, 1.0)))
    return model, (100 * torch.randn(4, 8),)


@TESTS.program("ethos-u85-256", U55, expected=replace(EXACT, steps=1.0))
def angle_wrapped_quantized():
    """``fmod`` behind a linear layer, int8."""
    linear = torch.nn.Linear(8, 8)
    return Model(lambda m, x: torch.fmod(m.layers[0](x), 0.7), linear), (
        torch.randn(4, 8),
    )


@ROLL.program("vgf", "ethos-u85-256", U55, expected=EXACT)
def rolled():
    """``roll`` of two dimensions."""
    return Model(lambda m, x: x.roll((1, -3), (1, 2))), (torch.randn(2, 4, 8),)


@ROLL.program("vgf", "ethos-u85-256", expected=EXACT)
def upper_triangle():
    """``triu`` of a score."""
    return Model(lambda m, x: x.triu(1)), (torch.randn(2, 8, 8),)


@CONSTANTS.program("vgf", "vgf-fp", "ethos-u85-256")
def frequencies():
    """Timestep embedding: frequencies in float64, rounded once."""

    def forward(m, x):
        fraction = torch.arange(8, dtype=torch.float64) / 8
        return x * (10000**-fraction).to(torch.float32)

    return Model(forward), (torch.randn(4, 8),)


@CONSTANTS.program("vgf-fp", expected=EXACT)
def one_rounding_in_float64():
    """A product in float64, rounded to float32."""
    model = Model(lambda m, x, y: (x.double() * y.double()).float())
    return model, (torch.randn(4, 8), torch.randn(4, 8))


@SLICES.program("vgf", "vgf-fp", expected=EXACT)
def rotary_embedding():
    """The halves of a rotation, written into an empty tensor."""

    def forward(m, x):
        y = torch.empty_like(x)
        y[..., :4] = x[..., :4] - x[..., 4:]
        y[..., 4:] = x[..., 4:] + x[..., :4]
        return y

    return Model(forward), (torch.randn(2, 6, 8),)


@WHERE.program("ethos-u85-256")
def masked_attention():
    """Scores that a mask takes out, and their softmax."""

    def forward(m, x, mask):
        return torch.softmax(torch.where(mask, 2 * x, torch.finfo(x.dtype).min), -1)

    return Model(forward), (torch.randn(2, 6, 6), torch.rand(2, 6, 6) > 0.3)


@NORM.program("vgf-int", "ethos-u85-256")
def patches():
    """The patches of a vision transformer, normed and shuffled."""

    def forward(m, x):
        return m.layers[0](x.flatten(2).transpose(1, 2)).view(1, 4, 32)

    return Model(forward, torch.nn.LayerNorm(8)), (torch.randn(1, 8, 4, 4),)


@GATHER.program("vgf", "ethos-u85-256", expected=EXACT)
def codebook_rows():
    """Rows of two codebooks, picked by ``argmax``."""

    def forward(m, book, scores):
        code = scores.argmax(-1)[:, :, None, None].expand(2, 7, 1, 16)
        return book[:, None].expand(2, 7, 8, 16).gather(2, code)

    return Model(forward), (torch.randn(2, 8, 16), torch.randn(2, 7, 8))


@NO_GRAD.program("vgf-int", "ethos-u85-256")
def frozen_encoder():
    """An encoder under ``no_grad``, and a head."""

    def forward(m, x):
        with torch.no_grad():
            y = torch.relu(m.layers[0](x))
        return m.layers[1](y)

    layers = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    return Model(forward, *layers), (torch.randn(4, 8),)


@EXTREMUM.program("vgf", expected=EXACT)
def positions_from_zero():
    """Positions counted from the first that is seen."""

    def forward(m, x):
        positions = torch.cumsum(x > 0, dim=1) - 1
        return (positions - positions.min(dim=1, keepdim=True).values).float()

    return Model(forward), (torch.randn(3, 8),)


@ACCURACY.program("vgf", "vgf-fp", expected=Expected(tolerance=1e-5))
def either_sign():
    """log1p, asinh and log_softmax of numbers that cancel and underflow."""

    def forward(m, x):
        return torch.log1p(x / 5000.1), torch.asinh(x), torch.log_softmax(x, -1)

    return Model(forward), (torch.linspace(-5000.0, 5000.0, 32).reshape(2, 16),)


@ACCURACY.program("vgf", expected=EXACT)
def halves():
    """Halves are rounded to the even neighbour."""
    return Model(lambda m, x: torch.round(x)), (torch.arange(-4.0, 4.0, 0.5),)


@CAST.program("vgf", expected=EXACT)
def fraction_dropped():
    """Halves of both signs, to int8 and int16."""
    model = Model(lambda m, x: ((x * 3).to(torch.int8), (x * 3).to(torch.int16)))
    return model, (torch.arange(-8.0, 8.0, 0.5),)


@NEG.program("vgf-int", "ethos-u85-256", U55)
def negated_beside_cat():
    """A rotation by half a turn beside a cat, as a cache takes it."""
    model = Model(lambda m, x, y: (-x, torch.cat([x, y])))
    return model, (torch.rand(2, 8) - 0.9, 20 * torch.rand(2, 8))


@VIEWS.program("vgf-int", "ethos-u85-256", U55, expected=EXACT)
def features_joined():
    """Features of two cameras, put side by side."""

    def forward(m, x, y):
        return torch.hstack([m.layers[0](x), m.layers[0](y)]).mT * 0.5

    layer = torch.nn.Linear(8, 8)
    return Model(forward, layer), (torch.randn(2, 4, 8), torch.randn(2, 4, 8))


@INT_CAST.program("vgf-int", "ethos-u85-256")
def rotary_positions():
    """The sines of positions of what is present, as in a rotary embedding."""

    def forward(m, present, x):
        positions = torch.cumsum(present, dim=1) - 1
        frequencies = 10000.0 ** (-torch.arange(4) / 4)
        return x * torch.sin(positions.float()[..., None] * frequencies)

    return Model(forward), (torch.arange(6)[None] != 4, torch.randn(1, 6, 4))


@INT_CAST.program("vgf-int", "ethos-u85-256", U55, expected=EXACT)
def camera_image():
    """The bytes of an image to what a network takes."""
    image = torch.randint(0, 256, (1, 3, 8, 8), dtype=torch.uint8)
    return Model(lambda m, x: (x.float() / 255.0 - 0.5) * 2), (image,)


@DUPLICATES.program("vgf-int", "ethos-u85-256", U55)
def doubled_twice():
    """A sum beside a cat, and the same sum with a scale of its own."""
    model = Model(lambda m, x, y: (torch.cat([x, y + y]), (y + y) * 0.5))
    return model, (100 * torch.rand(2, 8), torch.rand(2, 8))
