# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""An int64 index that is a constant, wherever it lives."""

from collections.abc import Mapping

import torch
from arm_ext.programs._program import Expected, FLOAT, Gap, INTEGER, Model, U55

GAP = Gap(
    2,
    "index",
    "an int64 constant index stays on the CPU or throws",
    fix="int64-constant-index",
)
# An index moves data: the numbers are those of eager to the bit.
MOVED = Expected(tolerance=0.0, steps=0.0)
EVERYWHERE = (*FLOAT, "vgf-bf16", *INTEGER)
ONE_OF_EACH = ("vgf", "vgf-int", "ethos-u85-256")
_CAST = "dim_order_ops._to_dim_order_copy.default"


def _no_u55(*cpu_ops: str) -> Mapping[str, Expected]:
    """Ethos-U55 has no GATHER and no SCATTER, so the op stays on the CPU whole."""
    return {U55: Expected(delegates=0, cpu_ops=cpu_ops, tolerance=0.0, steps=0.0)}


def _buffer(model: Model, index: list[int], persistent: bool = True) -> Model:
    model.register_buffer("index", torch.tensor(index), persistent=persistent)
    return model


@GAP.program(
    *EVERYWHERE,
    U55,
    expected=MOVED,
    control=(U55,),
    on=_no_u55("aten.index.Tensor", _CAST),
)
def columns_by_constant():
    """``x[:, index]``, index a lifted constant."""
    model = Model(lambda m, x: x[:, m.index], index=torch.tensor([0, 2]))
    return model, (torch.randn(1, 4, 8),)


@GAP.program("vgf", "ethos-u85-256", expected=MOVED)
def columns_by_buffer():
    """``x[:, index]``, index a buffer."""
    model = _buffer(Model(lambda m, x: x[:, m.index]), [0, 2])
    return model, (torch.randn(1, 4, 8),)


@GAP.program(*FLOAT, "vgf-bf16", expected=MOVED)
def rows_by_constant():
    """``x[index]``, which stops the whole lowering on stock."""
    model = Model(lambda m, x: x[m.index], index=torch.tensor([2, 0, 2]))
    return model, (torch.randn(4, 8),)


@GAP.program("vgf", "ethos-u85-256", expected=MOVED)
def rows_by_unsaved_buffer():
    """``relu(x)[index]`` behind two slices, index not in the state dict."""
    model = Model(lambda m, x: torch.relu(x)[:, :, m.index])
    return _buffer(model, [1, 1, 3], persistent=False), (torch.randn(2, 3, 6),)


@GAP.program("vgf", expected=MOVED)
def list_in_the_code():
    """``x[:, [0, 2]]``."""
    return Model(lambda m, x: x[:, [0, 2]]), (torch.randn(2, 4, 6),)


@GAP.program(*ONE_OF_EACH, expected=MOVED)
def negative():
    """Indices counted from the end, which stock lowers to undefined TOSA."""
    model = Model(lambda m, x: x[m.index], index=torch.tensor([-1, 0, -4]))
    return model, (torch.randn(4, 8),)


@GAP.program(
    *ONE_OF_EACH,
    U55,
    expected=MOVED,
    control=(*INTEGER, U55),
    on=_no_u55("aten.index.Tensor", _CAST, _CAST),
)
def two_indices():
    """Two index tensors that broadcast."""
    model = Model(
        lambda m, x: x[m.rows, m.columns],
        rows=torch.tensor([[0], [2]]),
        columns=torch.tensor([1, 0, 3]),
    )
    return model, (torch.randn(4, 5),)


@GAP.program(*ONE_OF_EACH, expected=MOVED)
def constant_mask():
    """A bool mask that is a constant."""
    mask = torch.tensor([True, False, True, True])
    return Model(lambda m, x: x[m.mask], mask=mask), (torch.randn(4, 8),)


@GAP.program(
    *ONE_OF_EACH,
    U55,
    expected=MOVED,
    control=(*INTEGER, U55),
    on=_no_u55("aten.index_select.default", _CAST),
)
def index_select():
    """``index_select`` on the second dimension."""
    index = torch.tensor([2, 0])
    model = Model(lambda m, x: x.index_select(1, m.index), index=index)
    return model, (torch.randn(2, 4, 6),)


@GAP.program(
    *ONE_OF_EACH,
    U55,
    expected=MOVED,
    control=(*INTEGER, U55),
    on=_no_u55("aten.gather.default"),
)
def gather():
    """``gather`` on the second dimension."""
    index = torch.tensor([[0, 2, 1]])
    model = Model(lambda m, x: torch.gather(x, 1, m.index), index=index)
    return model, (torch.randn(1, 4),)


@GAP.program(*ONE_OF_EACH, U55, control=(*INTEGER, U55))
def embedding():
    """Position embeddings added to the input."""
    model = Model(
        lambda m, x: x + m.layers[0](m.positions),
        torch.nn.Embedding(8, 16),
        positions=torch.arange(4),
    )
    return model, (torch.randn(1, 4, 16),)


@GAP.program(
    *ONE_OF_EACH,
    U55,
    expected=MOVED,
    control=(*INTEGER, U55),
    on=_no_u55("aten.index_put.default", _CAST),
)
def index_put():
    """Rows written by ``index_put``."""

    def forward(module, x, rows):
        return torch.index_put(x, (module.index,), rows)

    model = Model(forward, index=torch.tensor([2, 0]))
    return model, (torch.randn(4, 8), torch.randn(2, 8))


@GAP.program("vgf", expected=Expected(delegates=0, cpu_ops=("aten.index_put.default",)))
def repeated_index_put():
    """``index_put`` with a repeated index must not be narrowed."""

    def forward(module, x, rows):
        return torch.index_put(x, (module.index,), rows)

    row = torch.randn(1, 8).expand(2, 8).contiguous()
    model = Model(forward, index=torch.tensor([2, 2]))
    return model, (torch.randn(4, 8), row)


@GAP.program("vgf", expected=Expected(cpu_ops=("aten.add.Tensor",), tolerance=0.0))
def also_an_output():
    """An index that the CPU reads too keeps its int64 copy."""

    def forward(module, x):
        return x[module.index], module.index + 2**40

    return Model(forward, index=torch.tensor([2, 0])), (torch.randn(4, 8),)
