# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Constant int64 indices, end to end: delegates, numbers, and what is refused.

An index moves data, so every number is compared bit for bit: floats with eager,
integers with the quantized eager program. Many ops share one program, because a
lowering takes longer than they do.

"""

import arm_ext
import pytest
import torch
from arm_ext.coverage import coverage, reject_reasons
from arm_ext.targets import lower, quantize, Target, TARGETS
from arm_ext.verify import run
from executorch.exir import EdgeCompileConfig, to_edge
from torch.export import Dim, export
from torch.utils._pytree import tree_leaves

FIX = "int64-constant-index"
X = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(0))


class Model(torch.nn.Module):
    """``forward(model, x)`` with its constants as attributes.

    A name that starts with ``buffer``, ``unsaved`` or ``parameter`` says where
    the constant lives; any other is lifted from an attribute.

    """

    def __init__(self, forward, **constants):
        super().__init__()
        self._forward = forward
        for name, value in constants.items():
            value = value if isinstance(value, torch.Tensor) else torch.tensor(value)
            if name.startswith(("buffer", "unsaved")):
                self.register_buffer(name, value, persistent=name.startswith("b"))
            elif name.startswith("parameter"):
                setattr(self, name, torch.nn.Parameter(value, requires_grad=False))
            else:
                setattr(self, name, value)

    def forward(self, *inputs):
        return self._forward(self, *inputs)


def _reads(m, x):
    x = torch.relu(x)
    return (
        x[m.rows],
        x[:, m.buffer],
        x[:, :, m.unsaved],
        x[m.parameter],
        x[:, [0, -1]],
        x[:, torch.arange(2)],
        x[..., m.matrix],
        x[m.rows, :, m.matrix[0]],
        x[:, m.matrix[:, :1], m.rows],
        x[:, 1:3, m.rows],
        x.permute(2, 0, 1)[:, :, m.rows],
        x[0, 0][m.rows],
        x.index_select(-1, m.rows.abs()),
        x.gather(1, m.places),
        x.gather(-1, m.places[:1, :3, :5]),
        x.gather(1, m.rows.abs().reshape(1, 3, 1).expand(2, 3, 6)),
        m.table[m.rows],
    )


def _writes(m, x):
    x = torch.relu(x)
    values = x[:, :2] * 2
    written = x.clone()
    written[:, m.pair] = 0.0
    masked = x.clone()
    masked[:, m.mask] = x[:, :2]
    return (
        x.index_put((m.pair,), x[:2, :1]),
        x.index_put((m.column, m.row), torch.tensor(3.0)),
        x.index_copy(1, m.pair + 2, values),
        x.scatter(1, m.once, values),
        x.scatter(-1, m.once, 0.5),
        written,
        masked,
    )


READS = Model(
    _reads,
    rows=[1, 0, -1],
    buffer=[1, 3, -2],
    unsaved=[5, -6],
    parameter=[1, 1],
    matrix=[[1, 2, 0], [-1, 3, 3]],
    places=torch.arange(36).reshape(2, 3, 6) % 4,
    table=torch.randn(4, 6),
)
WRITES = Model(
    _writes,
    pair=[-1, 0],
    mask=[True, False, False, True],
    column=[[1], [0]],
    row=[[3, 0, 1]],
    once=[[[1, 0, 2], [0, 1, 3]]],
)
# The same index for a read of every dimension; float16, bool and integers.
KINDS = Model(
    lambda m, x: (
        x.half()[:, m.i],
        (x > 0)[m.i],
        (x > 0).to(torch.int32)[:, :, m.i],
        x.reshape(1, 2, 2, 2, 6)[:, m.i, :, m.i],
        x.reshape(48)[m.i],
        x[:, m.mask].reshape(2, 3, -1)[..., m.i] * 2,
    ),
    i=[-1, 0],
    mask=[True, False, True, False],
)


def _check(edge, model, *inputs, delegates=1, left=()):
    found = coverage(edge)
    assert (found.delegates, found.compute_ops) == (delegates, left)
    with torch.no_grad():
        expected = tree_leaves(model(*inputs))
    for actual, wanted in zip(tree_leaves(run(edge, *inputs)), expected, strict=True):
        assert actual.shape == wanted.shape and actual.dtype == wanted.dtype
        assert torch.equal(actual, wanted)
    edge.to_executorch()


@pytest.mark.parametrize("model", [READS, WRITES, KINDS], ids=["read", "write", "kind"])
def test_vgf_float(model):
    _check(lower(model, (X,), TARGETS["vgf"]), model, X)


@pytest.mark.parametrize("model", [READS, WRITES], ids=["read", "write"])
@pytest.mark.parametrize(
    ("target", "quantization"),
    [("vgf-int", "int8"), ("ethos-u85-256", "int8"), ("ethos-u85-256", "a16w8")],
)
def test_integer(model, target, quantization):
    target = TARGETS[target]
    quantized = quantize(model, (X,), target, quantization)
    _check(lower(quantized, (X,), target), quantized, X)


def test_bfloat16():
    model = Model(lambda m, x: (x[:, m.i], x[m.i, :, m.i]), i=[1, -2])
    x = X.bfloat16()
    _check(lower(model, (x,), TARGETS["vgf-bf16"]), model, x)


def test_embedding():
    model = Model(
        lambda m, x: m.table(m.ids) + m.table(torch.arange(4)) + x, ids=[[3, 1, 1, 0]]
    )
    model.table = torch.nn.Embedding(8, 6)
    _check(lower(model, (X,), TARGETS["vgf"]), model, X)


def test_integer_mask():
    target = TARGETS["ethos-u85-256"]
    model = Model(
        lambda m, x: torch.relu(x)[:, m.mask] * 2, mask=[True, False, True, True]
    )
    quantized = quantize(model, (X,), target)
    _check(lower(quantized, (X,), target), quantized, X)


def test_accumulating_writes():
    model = Model(
        lambda m, x: (
            x.index_put((m.pair,), x[:, :1], accumulate=True),
            x.index_add(1, m.pair, x[:, :2]),
            x.scatter_add(1, m.once, x),
        ),
        pair=[1, 0],
        once=[[[1, 0, 2], [0, 1, 3]]],
    )
    _check(lower(model, (X,), TARGETS["vgf"]), model, X)


STOCK_GAPS = {
    "rows": (lambda m, x: torch.relu(x)[m.i], {"i": [1, 0]}),
    "columns": (lambda m, x: torch.relu(x)[:, m.i], {"i": [1, 0]}),
    "negative buffer": (lambda m, x: torch.relu(x)[m.buffer], {"buffer": [1, -1]}),
    "gather": (
        lambda m, x: torch.relu(x).gather(1, m.i),
        {"i": torch.zeros(2, 1, 6, dtype=torch.int64)},
    ),
}


def _is_closed(forward, constants):
    model = Model(forward, **constants)
    try:
        _check(lower(model, (X,), TARGETS["vgf-fp"]), model, X)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("name", STOCK_GAPS)
def test_open_on_stock_and_closed_with_the_fix(name):
    with arm_ext.patched(disable=[FIX]):
        assert not _is_closed(*STOCK_GAPS[name])
    with arm_ext.patched(only=[FIX]):
        assert _is_closed(*STOCK_GAPS[name])


def _written_buffer(m, x):
    m.buffer.add_(0)
    return torch.relu(x)[:, m.buffer]


REFUSED = {
    "out of range": (
        lambda m, x: torch.relu(x)[:, m.i],
        [0, 4],
        "holds 4, out of range",
    ),
    "below range": (lambda m, x: torch.relu(x)[m.i], [-3], "holds -3, out of range"),
    "beyond int32": (
        lambda m, x: torch.relu(x).index_select(1, m.i),
        [0, 2**40],
        "holds 1099511627776, out of range",
    ),
    "empty": (
        lambda m, x: torch.relu(x)[:, m.i],
        torch.zeros(0, dtype=torch.int64),
        "the index is empty",
    ),
    "written twice": (
        lambda m, x: torch.relu(x).index_put((m.i,), x[:1]),
        [1, -1],
        "selects a place more than once",
    ),
    "added twice": (
        lambda m, x: torch.relu(x).index_put((m.i,), x[:1], accumulate=True),
        [1, 1],
        "selects a place more than once",
    ),
    "scattered twice": (
        lambda m, x: torch.relu(x).scatter(1, m.i, x),
        [[[1], [1]]],
        "selects a place more than once",
    ),
}


def _reasons(edge):
    return [reason for left in coverage(edge).left for reason in left.reasons]


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason_in_the_report(name):
    forward, index, reason = REFUSED[name]
    with reject_reasons():
        edge = lower(Model(forward, i=index), (X,), TARGETS["vgf-fp"])
    assert coverage(edge).delegates == 1  # the relu
    assert any(reason in given for given in _reasons(edge))
    edge.to_executorch()


def test_a_buffer_that_the_program_writes_is_refused():
    model = Model(_written_buffer, buffer=[1, 0])
    with reject_reasons():
        edge = lower(model, (X,), TARGETS["vgf-fp"])
    assert any("buffer 'buffer' is written" in given for given in _reasons(edge))
    assert torch.equal(run(edge, X), torch.relu(X)[:, [1, 0]])


def test_an_index_on_u55_stays_on_the_cpu_as_int64():
    target = TARGETS["ethos-u55-128"]
    model = Model(
        lambda m, x: torch.relu(x).gather(1, m.i), i=torch.zeros(2, 1, 6).long()
    )
    quantized = quantize(model, (X,), target)
    with reject_reasons():
        edge = lower(quantized, (X,), target)
    assert coverage(edge).compute_ops == ("aten.gather.default",)
    assert any("not supported on U55" in given for given in _reasons(edge))
    gather = next(n for n in edge.exported_program().graph.nodes if "gather" in n.name)
    # What the CPU kernel takes; annotation had cast the constant to int32.
    assert gather.args[2].meta["val"].dtype == torch.int64
    assert torch.equal(run(edge, X), quantized(X))


def test_a_symbolic_source_is_refused():
    model = Model(lambda m, x: torch.relu(x)[:, m.i], i=[1, 0])
    shapes = {"inputs": ({0: Dim("batch", min=2, max=8)},)}
    with reject_reasons():
        edge = lower(model, (X,), TARGETS["vgf-fp"], dynamic_shapes=shapes)
    assert any("symbolic size" in given for given in _reasons(edge))
    edge.to_executorch()


def test_an_index_in_a_branch_is_refused():
    def forward(m, x):
        return torch.cond(
            x.sum() > 0, lambda x: x[:, m.i] + 1.0, lambda x: x[:, m.i] * 2.0, (x,)
        )

    model = Model(forward, i=[1, 0])
    with reject_reasons():
        edge = lower(model, (X,), TARGETS["vgf-fp"])
    assert any("control-flow branch" in given for given in _reasons(edge))
    assert torch.equal(run(edge, X), model(X))


def test_a_mask_that_is_known_at_run_time_is_refused():
    model = Model(lambda m, x: torch.relu(x)[x > 0])
    with reject_reasons():
        edge = lower(model, (X,), TARGETS["vgf-fp"])
    assert any("the mask is not constant" in given for given in _reasons(edge))
    assert torch.equal(run(edge, X), model(X))


def test_constant_that_is_an_output_and_used_on_the_cpu_stays_int64():
    model = Model(
        lambda m, x: (torch.relu(x)[m.buffer], m.buffer, x.long() + m.buffer.sum()),
        buffer=[1, 0],
    )
    edge = lower(model, (X,), TARGETS["vgf-fp"])
    for actual, wanted in zip(run(edge, X), model(X), strict=True):
        assert actual.dtype == wanted.dtype and torch.equal(actual, wanted)
    edge.to_executorch()


def test_to_backend_leaves_the_callers_programs_alone():
    model = Model(
        lambda m, x: torch.relu(x)[:, m.buffer] + x[:, [0, -1]], buffer=[1, 0]
    )
    program = export(model, (X,))
    edge = to_edge(program, compile_config=EdgeCompileConfig(_check_ir_validity=True))
    edge_program = edge.exported_program()

    def state():
        return [
            (str(p), {**p.state_dict}, {**p.constants}) for p in (program, edge_program)
        ]

    before = state()
    for name in ("vgf-fp", "vgf-fp", "vgf"):
        _check(edge.to_backend(TARGETS[name].partitioner()), model, X)
        _check(lower(program, (X,), TARGETS[name]), model, X)
    for (text, *tables), (old_text, *old_tables) in zip(state(), before, strict=True):
        assert text == old_text
        for table, old in zip(tables, old_tables, strict=True):
            assert list(table) == list(old)
            assert all(table[key] is old[key] for key in table)


UNTOUCHED = {
    "no index": lambda m, x: torch.relu(x) * 2,
    "runtime int32 index": lambda m, x: x[m.i] + x[x[0, 0, :2].to(torch.int32) * 0],
    "slices": lambda m, x: x[:, 1:3, ::2],
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_other_programs_are_lowered_to_the_same_bytes(name):
    model = Model(UNTOUCHED[name], i=torch.tensor([1, 0], dtype=torch.int32))

    def payload():
        return (
            lower(model, (X,), Target("vgf-fp", "TOSA-1.0+FP")).to_executorch().buffer
        )

    with arm_ext.patched(disable=[FIX]):
        stock = payload()
    with arm_ext.patched():
        assert payload() == stock
