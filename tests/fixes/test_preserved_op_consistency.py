# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Kept ops are taken by the partitioner or decomposed; nothing stops lowering."""

import arm_ext
import preserved_ops as walk
import pytest
import torch
import torch.nn.functional as F
from arm_ext import verify
from arm_ext.coverage import coverage
from arm_ext.partitioner.preserved import EdgeView
from arm_ext.targets import lower, quantize, TARGETS
from executorch.backends.arm.ethosu import EthosUBackend
from executorch.backends.arm.vgf import VgfBackend
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.backend.backend_details import PreprocessResult
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.tracer import _default_decomposition_table
from executorch.runtime import Runtime
from lowered import Call
from torch.export import export

ONLY = ("preserved-op-consistency",)
VGF, VGF_FP, VGF_INT = TARGETS["vgf"], TARGETS["vgf-fp"], TARGETS["vgf-int"]
U85 = TARGETS["ethos-u85-256"]
WALKED = (VGF, U85)
aten = torch.ops.aten
BF16 = torch.bfloat16


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched(only=ONLY):
        yield


@pytest.fixture
def no_compiler(monkeypatch):
    """Lower in full, but make empty payloads: partitioning is what counts."""

    def preprocess(program, specs):
        return PreprocessResult(processed_bytes=b"no payload")

    for backend in (VgfBackend, EthosUBackend):
        monkeypatch.setattr(backend, "preprocess", staticmethod(preprocess))


def close(got, want):
    """Same shape, dtype and value: 1e-4 in fp32, 1 % in fp16 and bf16."""
    half = want.dtype in (torch.float16, BF16)
    return (
        got.shape == want.shape
        and got.dtype == want.dtype
        and torch.allclose(
            got.double(),
            want.double(),
            rtol=1e-2 if half else 1e-4,
            atol=1e-2 if half else 1e-5,
            equal_nan=True,
        )
    )


def names_of_wrong(programs, got, want):
    return [p.name for p, g, w in zip(programs, got, want) if not close(g, w)]


def on_cpu(edge):
    """Return for each output whether no delegate has a part in it."""
    (outputs,) = edge.exported_program().graph.output_node().args
    return [not _has_delegate(output) for output in outputs]


def _has_delegate(output):
    to_visit, seen = [output], set()
    while to_visit:
        node = to_visit.pop()
        if "executorch_call_delegate" in str(node.target):
            return True
        to_visit += [n for n in node.all_input_nodes if n not in seen]
        seen.update(node.all_input_nodes)
    return False


def run(edge, inputs):
    """Run a program: in the Python runtime, unless it has Arm delegates."""
    if coverage(edge).delegates == 0:
        return run_in_runtime(edge.to_executorch(), inputs)
    edge.to_executorch()
    got = verify.run(edge, *inputs)
    return got if isinstance(got, (list, tuple)) else [got]


def run_in_runtime(executorch, inputs):
    program = Runtime.get().load_program(executorch.buffer)
    return program.load_method("forward").execute(list(inputs))


@pytest.mark.parametrize("name", TARGETS)
def test_the_walk_has_every_kept_op(name):
    program = export(Call(torch.relu), (torch.randn(2),))
    ops, _ = TARGETS[name].partitioner().ops_to_not_decompose(program)
    assert set(ops) <= set(walk.OPS)


@pytest.mark.parametrize("target", WALKED, ids=lambda target: target.name)
@pytest.mark.parametrize("op", walk.OPS, ids=str)
def test_every_dtype_and_rank(op, target, no_compiler):
    programs = walk.programs(op)
    bundle = walk.Bundle(programs)
    edge = lower(bundle, bundle.inputs, target)
    if op in _default_decomposition_table():
        assert str(op) not in coverage(edge).cpu_ops
    mask = on_cpu(edge)
    executorch = edge.to_executorch()

    programs = [p for p, cpu in zip(programs, mask) if cpu]
    if not programs:
        return
    if not all(mask):
        programs = programs[::3]  # a sample: it is lowered a second time
        bundle = walk.Bundle(programs)
        edge = lower(bundle, bundle.inputs, target)
        assert coverage(edge).delegates == 0
        executorch = edge.to_executorch()
    got = run_in_runtime(executorch, bundle.inputs)
    assert names_of_wrong(programs, got, bundle(*bundle.inputs)) == []


# grid_sampler_2d lowers to a custom op of VGF, which the model does not run.
IN_TOSA = [op for op in walk.OPS if op is not aten.grid_sampler_2d.default]


@pytest.mark.parametrize("op", IN_TOSA, ids=str)
def test_what_is_taken_has_eagers_numbers(op):
    """The whole lowering, the delegates on the TOSA reference model."""
    programs = walk.programs(op)
    programs = programs[:: max(1, len(programs) // 8)]
    bundle = walk.Bundle(programs)
    edge = lower(bundle, bundle.inputs, VGF)
    got = verify.run(edge, *bundle.inputs)
    assert names_of_wrong(programs, got, bundle(*bundle.inputs)) == []


def ints(dtype, *shape):
    return walk.tensor(dtype, shape)


FALL_BACK = {
    "int8 pad": (lambda x: F.pad(x, (1, 1)), (ints(torch.int8, 2, 8),), VGF),
    "int16 pad": (lambda x: F.pad(x, (1, 1)), (ints(torch.int16, 2, 8),), VGF),
    "int8 add": (torch.add, (ints(torch.int8, 2, 8),) * 2, VGF),
    "int16 add": (torch.add, (ints(torch.int16, 2, 8),) * 2, U85),
    "bool add": (torch.add, (ints(torch.bool, 2, 8),) * 2, VGF),
    "int8 equal": (torch.eq, (ints(torch.int8, 2, 8),) * 2, VGF),
    "int32 relu": (torch.relu, (ints(torch.int32, 2, 8),), VGF),
    "int32 clamp": (lambda x: x.clamp(1, 3), (ints(torch.int32, 2, 8),), VGF_FP),
    "int32 maximum": (torch.maximum, (ints(torch.int32, 2, 8),) * 2, VGF_FP),
    "bf16 grid_sample": (
        lambda x, grid: F.grid_sample(x, grid, align_corners=False),
        (torch.rand(1, 2, 4, 4).to(BF16), torch.rand(1, 3, 3, 2).to(BF16)),
        VGF,
    ),
    "fp64 grid_sample": (
        lambda x, grid: F.grid_sample(x, grid, align_corners=False),
        (torch.rand(1, 2, 4, 4).double(), torch.rand(1, 3, 3, 2).double()),
        VGF,
    ),
    "conv with an input as weight": (
        F.conv2d,
        (torch.randn(1, 2, 8, 8), torch.randn(3, 2, 3, 3)),
        VGF,
    ),
    "int32 linear": (F.linear, (ints(torch.int32, 2, 8), ints(torch.int32, 3, 8)), VGF),
    "int8 linear": (F.linear, (ints(torch.int8, 2, 8), ints(torch.int8, 3, 8)), VGF),
}
LOWER = {
    "crop": (lambda x: F.pad(x, (-1, -2)), (torch.randn(2, 8),), VGF),
    "crop and pad": (
        lambda x: F.pad(x, (-1, 2, 3, -1), value=2.5),
        (torch.randn(2, 3, 8),),
        VGF,
    ),
    "int32 crop": (lambda x: F.pad(x, (-1, 1)), (ints(torch.int32, 2, 8),), U85),
    "int32 logit": (torch.logit, (ints(torch.int32, 2, 8),), VGF),
    "bool logit": (torch.logit, (ints(torch.bool, 2, 8),), VGF),
    "linear with an input as weight": (
        F.linear,
        (torch.randn(2, 8), torch.randn(3, 8)),
        VGF,
    ),
    "linear with a computed weight": (
        lambda x, w, b: F.linear(x, w * 2, b),
        (torch.randn(2, 8), torch.randn(3, 8), torch.randn(3)),
        VGF,
    ),
}


@pytest.mark.parametrize("name", [*FALL_BACK, *LOWER])
def test_nothing_stops_the_lowering(name):
    function, inputs, target = {**FALL_BACK, **LOWER}[name]
    with arm_ext.patched(only=()), pytest.raises(Exception):
        lower(Call(function), inputs, target).to_executorch()

    edge = lower(Call(function), inputs, target)
    if name in LOWER:
        assert coverage(edge).delegates == 1
        assert coverage(edge).cpu_ops == ()
    else:
        assert len(coverage(edge).cpu_ops) == 1
    (got,) = run(edge, inputs)
    assert close(got, function(*inputs))


@pytest.mark.parametrize("pads", [(-1, -2), (2, -3), (-1, 0, 3, -1), (-4, -4)])
@pytest.mark.parametrize("target", [VGF, U85], ids=lambda target: target.name)
def test_crop_on_the_cpu_runs(pads, target):
    """The portable constant_pad_nd takes no negative size, with or without Arm."""
    module = Call(lambda x: F.pad(x, pads, value=1.5))
    inputs = (torch.randn(2, 3, 8).to(BF16),)
    with arm_ext.patched(only=()), pytest.raises(RuntimeError):
        run_in_runtime(lower(module, inputs, target).to_executorch(), inputs)

    edge = lower(module, inputs, target)
    assert coverage(edge).delegates == 0
    (got,) = run_in_runtime(edge.to_executorch(), inputs)
    assert torch.equal(got, module(*inputs))


def test_crop_of_symbolic_size_on_the_cpu_runs():
    module = Call(lambda x: F.pad(x, (-1, 0, -1, -1)))
    inputs = (torch.randn(4, 8).to(BF16),)
    rows = {0: torch.export.Dim("rows", min=4, max=8)}
    exported = export(module, inputs, dynamic_shapes=((rows,),))
    edge = to_edge_transform_and_lower(exported, partitioner=[VGF.partitioner()])
    executorch = edge.to_executorch()
    for count in (4, 6):
        x = torch.randn(count, 8).to(BF16)
        (got,) = run_in_runtime(executorch, (x,))
        assert torch.equal(got, module(x))


KEPT_ON_CPU = {
    "bf16 pad": (lambda x: F.pad(x, (1, 1)), torch.randn(1, 4, 8).to(BF16)),
    "bf16 reflect": (
        lambda x: F.pad(x, (1, 1), mode="reflect"),
        torch.randn(1, 4, 8).to(BF16),
    ),
    "int64 pad": (lambda x: F.pad(x, (1, 1)), torch.arange(8)),
    "uint8 pad": (lambda x: F.pad(x, (1, 1)), torch.arange(8, dtype=torch.uint8)),
    "rank 7 pad": (lambda x: F.pad(x, (1, 1)), torch.randn(1, 1, 1, 1, 2, 2, 8)),
    "uint8 eye": (lambda x: torch.eye(3, dtype=torch.uint8) * x, torch.tensor(2)),
    "bf16 linspace": (
        lambda x: torch.linspace(0, 1, 5, dtype=BF16) * x,
        torch.tensor(2).to(BF16),
    ),
    "bf16 selu": (F.selu, torch.randn(8).to(BF16)),
    "bf16 celu": (F.celu, torch.randn(8).to(BF16)),
}


@pytest.mark.parametrize("name", KEPT_ON_CPU)
def test_what_stays_on_the_cpu_runs_there(name):
    function, value = KEPT_ON_CPU[name]
    with arm_ext.patched(only=()), pytest.raises(RuntimeError):
        run(lower(Call(function), (value,), VGF), (value,))
    (got,) = run(lower(Call(function), (value,), VGF), (value,))
    assert close(got, function(value))


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.linear(x)


@pytest.mark.parametrize("target", [VGF, VGF_INT, U85], ids=lambda t: t.name)
@pytest.mark.parametrize(
    "module",
    [
        Linear(),
        *(
            Call(function)
            for function in (
                F.silu,
                F.hardsigmoid,
                F.hardswish,
                lambda x: F.pad(x, (1, 1)),
            )
        ),
    ],
    ids=["linear", "silu", "hardsigmoid", "hardswish", "pad"],
)
def test_quantized_rank_7(module, target):
    torch.manual_seed(0)
    inputs = (torch.randn(1, 1, 1, 1, 1, 2, 8),)
    quantized = quantize(module, inputs, target)
    edge = lower(quantized, inputs, target)
    (got,), want = run(edge, inputs), quantized(*inputs)
    step = (want.max() - want.min()) / 255
    assert (got - want).abs().max() <= step + 1e-6


@pytest.mark.parametrize("quantization", ["int8", "a16w8"])
@pytest.mark.parametrize("target", [VGF, U85], ids=lambda t: t.name)
def test_quantized_crop_is_exact(target, quantization):
    torch.manual_seed(0)
    module, inputs = Call(lambda x: F.pad(x, (-1, 2, 1, -1)) + 1), (torch.randn(3, 8),)
    quantized = quantize(module, inputs, target, quantization)
    with arm_ext.patched(only=()), pytest.raises(Exception):
        lower(quantized, inputs, target)
    edge = lower(quantized, inputs, target)
    assert coverage(edge).delegates == 1
    assert coverage(edge).compute_ops == ()
    (got,), want = run(edge, inputs), quantized(*inputs)
    steps = 255 if quantization == "int8" else 65535
    assert (got - want).abs().max() <= 1.01 * (want.max() - want.min()) / steps


def test_uint8_beside_a_kept_op_leaves_it_delegated():
    def model(x, y):
        return F.pad(x, (1, 1)), torch.cat([y, y])

    inputs = torch.randn(2, 8), torch.arange(8, dtype=torch.uint8)
    with arm_ext.patched(only=()), pytest.raises(RuntimeError, match="out variants"):
        lower(Call(model), inputs, VGF).to_executorch()
    edge = lower(Call(model), inputs, VGF)
    assert coverage(edge).delegates == 1
    assert coverage(edge).cpu_ops == ("aten.cat.default",)
    got, want = run(edge, inputs), model(*inputs)
    assert all(close(g, w) for g, w in zip(got, want))


def test_the_reason_is_reported(caplog):
    with caplog.at_level("INFO", logger="executorch.backends.arm.tosa.partitioner"):
        lower(Call(F.linear), (ints(torch.int32, 2, 8), ints(torch.int32, 3, 8)), VGF)
    assert "floating-point and" in caplog.text


class Block(torch.nn.Module):
    """Has every kept op that stock delegates."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        x = F.selu(self.linear(x)) + F.celu(x) + F.silu(x) + F.hardswish(x)
        x = torch.cat([F.pad(x, (1, 1)), F.pad(x, (1, 1), mode="reflect")])
        return torch.logit(F.hardsigmoid(x), eps=1e-3)


@pytest.mark.parametrize(
    ("target", "quantization"),
    [(VGF, None), (VGF, "int8"), (U85, "int8")],
    ids=["vgf", "vgf int8", "ethos-u85 int8"],
)
def test_what_stock_delegates_is_untouched(target, quantization):
    torch.manual_seed(0)
    module, inputs = Block(), (torch.randn(2, 3, 8),)
    if quantization is not None:
        module = quantize(module, inputs, target, quantization)
    with arm_ext.patched(only=()):
        stock = lower(module, inputs, target).to_executorch().buffer
    assert lower(module, inputs, target).to_executorch().buffer == stock


def test_revert_brings_the_stock_failure_back():
    inputs = (torch.randn(1, 4, 8).to(BF16),)
    module = Call(lambda x: F.pad(x, (1, 1)))
    lower(module, inputs, VGF).to_executorch()
    arm_ext.revert()
    with pytest.raises(RuntimeError, match="Missing out variants"):
        lower(module, inputs, VGF).to_executorch()


def test_custom_partition_ops_are_the_users_business():
    """An op that a user registers is kept and taken in every dtype, as in stock."""
    partitioner = VGF.partitioner()
    grid_sampler = exir_ops.edge.aten.grid_sampler_2d.default
    assert grid_sampler not in partitioner._custom_partition_ops
    partitioner.register_custom_partition_op(grid_sampler)
    program = export(Call(torch.relu), (torch.randn(2),))
    ops, keep = partitioner.ops_to_not_decompose(program)
    node = torch.fx.Graph().call_function(grid_sampler)
    assert grid_sampler in ops and keep(node)


def test_edge_view_changes_targets_only():
    program = export(
        Call(lambda x: F.pad(x.view(4, 2), (1, 1)).to(torch.float16)),
        (torch.randn(8),),
    )
    program = program.run_decompositions({})
    before = [(node.name, node.target) for node in program.graph.nodes]
    view = EdgeView(program.graph)
    seen = [view[node] for node in program.graph.nodes if node.op == "call_function"]
    assert [str(node.target) for node in seen][:2] == [
        str(exir_ops.edge.aten.view_copy.default),
        str(exir_ops.edge.aten.pad.default),
    ]
    assert seen[1].meta["val"].shape == (4, 4)
    assert [(node.name, node.target) for node in program.graph.nodes] == before
