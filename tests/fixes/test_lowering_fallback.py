# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What cannot be lowered stays on the CPU, with a warning, and the rest is lowered."""

import os
import signal
import sys
import warnings
from pathlib import Path

import arm_ext
import pytest
import torch
import tosa_serializer
from arm_ext import verify
from arm_ext.coverage import coverage, reject_reasons
from arm_ext.fixes import lowering_fallback
from arm_ext.lowering.program_digest import program_digest
from arm_ext.targets import lower, quantize, TARGETS
from ethosu.vela import vela
from executorch.backends.arm._passes import ArmPassManager, DecomposeSinhPass
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.backends.arm.tosa import backend as tosa_backend
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.backend.backend_api import to_backend
from tosa.TosaGraph import TosaGraph

FIX = "lowering-fallback"
CONFIG = EdgeCompileConfig(_check_ir_validity=False)
VGF, INT = TARGETS["vgf-fp"], TARGETS["vgf-int"]
U85, U55 = TARGETS["ethos-u85-256"], TARGETS["ethos-u55-128"]
COMPILERS = {
    "vgf": "executorch.backends.arm.vgf.backend.vgf_compile",
    "ethos": "executorch.backends.arm.ethosu.backend.vela_compile",
}
WORDS = "no such op today"


@pytest.fixture(autouse=True)
def patched():
    with arm_ext.patched():
        yield


class Net(torch.nn.Module):
    """SIN between two parts that lower."""

    def forward(self, x):
        y = torch.tanh(x)
        z = torch.sin(y)
        return torch.sigmoid(z) + y


class Keeps(torch.nn.Module):
    """SELU is kept whole for the delegate."""

    def forward(self, x):
        return torch.nn.functional.selu(x * 2.0) + 1.0


X = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))


def reject(monkeypatch, backend, op, error=None):
    """Have a compiler reject each TOSA graph with an op; return its runs."""
    path = COMPILERS[backend]
    module, _, name = path.rpartition(".")
    compile_ = getattr(sys.modules[module], name)
    error = error or RuntimeError(
        f"Vgf compiler failed.\nRepro command:\n  converter x\nStderr:\n{WORDS}\n"
        "Stdout:\n"
    )
    runs = []

    def compile_or_reject(tosa, *args, **kwargs):
        runs.append(None)
        block = TosaGraph.GetRootAs(tosa, 0).Regions(0).Blocks(0)
        ops = {block.Operators(i).Op() for i in range(block.OperatorsLength())}
        if op is None or op in ops:
            raise error
        return compile_(tosa, *args, **kwargs)

    monkeypatch.setattr(path, compile_or_reject)
    return runs


def run(lower_it, *inputs):
    """Return the lowered program, its coverage and the warnings of the fallback."""
    with warnings.catch_warnings(record=True) as caught, reject_reasons():
        warnings.simplefilter("always")
        edge = lower_it()
    said = [str(w.message) for w in caught if "could not be lowered" in str(w.message)]
    return edge, coverage(edge, next(iter(edge.methods))), said


def check(edge, module, *inputs, atol=1e-5):
    """Compare with eager, and make the ``.pte``."""
    for values in inputs:
        torch.testing.assert_close(
            verify.run(edge, values), module(values), atol=atol, rtol=0
        )
    assert edge.to_executorch().buffer


def whole(module, *inputs, target=VGF):
    return lower(module.eval(), inputs, target)


def edge_first(module, *inputs):
    edge = to_edge(torch.export.export(module.eval(), inputs), compile_config=CONFIG)
    return edge.to_backend(VGF.partitioner())


def program_only(module, *inputs):
    edge = to_edge(torch.export.export(module.eval(), inputs), compile_config=CONFIG)
    edge._edge_programs["forward"] = to_backend(
        edge.exported_program(), VGF.partitioner()
    )
    return edge


@pytest.mark.parametrize("flow", [whole, edge_first, program_only])
def test_a_compiler_that_rejects_one_op(flow, monkeypatch):
    reject(monkeypatch, "vgf", tosa_serializer.Op.SIN)
    module = Net()
    if flow is whole:
        with arm_ext.patched(only=()), pytest.raises(RuntimeError, match=WORDS):
            flow(module, X)
    edge, covered, (said,) = run(lambda: flow(module, X))
    assert covered.delegates == 2
    (left,) = covered.left
    assert left.op == "aten.sin.default" and WORDS in left.reasons[0]
    assert "1 node " in said and "aten_sin_default" in said and WORDS in said
    assert "z = torch.sin(y)" in said and __file__ in said
    assert "converter x" not in said and "Traceback" not in said
    check(edge, module, X)


class Parts(torch.nn.Module):
    """Three partitions, as the backend has no atan2; SIN is in the last one."""

    def forward(self, x):
        y = torch.atan2(torch.tanh(x), x)
        z = torch.atan2(torch.sigmoid(y), y)
        return torch.sin(z) + y


def test_what_was_lowered_is_not_lowered_again(monkeypatch):
    runs = reject(monkeypatch, "vgf", tosa_serializer.Op.SIN)
    edge, covered, _ = run(lambda: whole(Parts(), X))
    assert covered.delegates == 3
    check(edge, Parts(), X)
    remembered = len(runs)
    monkeypatch.setattr(lowering_fallback, "program_digest", lambda program: object())
    fresh, _, _ = run(lambda: whole(Parts(), X))
    assert len(runs) - remembered == remembered + 2
    assert edge.to_executorch().buffer == fresh.to_executorch().buffer


def test_programs_are_told_apart():
    def program(**changes):
        module = torch.nn.Linear(2, 3)
        for name, value in {"weight": 1.0, "bias": 0.0, **changes}.items():
            torch.nn.init.constant_(getattr(module, name), value)
        return torch.export.export(module, (torch.ones(1, 2),))

    same, other = program_digest(program()), program(weight=2.0)
    assert same == program_digest(program())
    assert same != program_digest(other)
    changed = program()
    node = next(n for n in changed.graph.nodes if n.op == "call_function")
    node.meta["a_key_of_a_pass"] = True
    assert same != program_digest(changed)


def test_a_serializer_that_names_the_node(monkeypatch):
    process = tosa_backend.process_call_function

    def fails(node, *args):
        if "sin" in node.name:
            raise ValueError("not this one")
        return process(node, *args)

    monkeypatch.setattr(tosa_backend, "process_call_function", fails)
    runs = reject(monkeypatch, "vgf", -1)
    module = Net()
    edge, covered, (said,) = run(lambda: whole(module, X))
    assert covered.cpu_ops == ("aten.sin.default",)
    assert "aten_sin_default" in said and "ValueError: not this one" in said
    assert len(runs) == 1 + 2 + 2  # the sum of two tensors, one trial, the result
    check(edge, module, X)


def test_a_pass_that_fails_on_the_tosa_backend(monkeypatch):
    def fails(self, op, *args):
        if op in self.target_ops:
            raise AssertionError
        return call_operator(self, op, *args)

    call_operator = DecomposeSinhPass.call_operator
    monkeypatch.setattr(DecomposeSinhPass, "call_operator", fails)
    module = torch.nn.Sequential(torch.nn.Tanh(), Sinh(), torch.nn.Sigmoid())
    edge, covered, (said,) = run(
        lambda: to_edge_transform_and_lower(
            torch.export.export(module, (X,)),
            partitioner=[TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))],
            compile_config=CONFIG,
        )
    )
    assert covered.delegates == 2 and covered.cpu_ops == ("aten.sinh.default",)
    assert "AssertionError" in said and "raise AssertionError" in said
    check(edge, module, X)


def test_a_pass_of_the_users_raises(monkeypatch):
    def fails(self, graph_module):
        raise ValueError("broken on purpose")

    monkeypatch.setattr(DecomposeSinhPass, "call", fails)
    with pytest.raises(Exception, match="DecomposeSinhPass|broken"):
        whole(Sinh(), X)


class Sinh(torch.nn.Module):
    def forward(self, x):
        return torch.sinh(x)


def test_an_op_kept_whole_is_decomposed(monkeypatch):
    reject(monkeypatch, "vgf", tosa_serializer.Op.EXP)
    edge, covered, (said,) = run(lambda: whole(Keeps(), X))
    assert covered.delegates == 2 and covered.cpu_ops == ("aten.elu.default",)
    assert said.count(WORDS) == 1 and "aten_elu_default" in said
    check(edge, Keeps(), X)


def test_what_it_decomposes_into_may_be_delegated(monkeypatch):
    transform = ArmPassManager.transform_to_backend_pipeline

    def fails(self, exported_program, graph_module):
        if any("selu" in node.name for node in graph_module.graph.nodes):
            raise RuntimeError(WORDS)
        return transform(self, exported_program, graph_module)

    monkeypatch.setattr(ArmPassManager, "transform_to_backend_pipeline", fails)
    edge, covered, (said,) = run(lambda: whole(Keeps(), X))
    assert covered.delegates == 1 and covered.cpu_ops == ()
    assert "aten_selu_default" in said
    check(edge, Keeps(), X, atol=1e-4)  # expm1, as the backend approximates it


@pytest.mark.parametrize(
    ("backend", "target"), [("vgf", INT), ("ethos", U55)], ids=["vgf", "u55"]
)
def test_a_quantized_node_keeps_its_quantization(backend, target, monkeypatch):
    module = torch.nn.Sequential(torch.nn.ReLU(), Sinh(), torch.nn.Hardtanh())
    quantized = quantize(module, (X,), target)
    reject(monkeypatch, backend, tosa_serializer.Op.TABLE)
    edge, covered, (said,) = run(lambda: lower(quantized, (X,), target))
    assert covered.delegates == 2
    assert covered.compute_ops == ("aten.sinh.default",)
    assert "aten_sinh_default" in said
    output = [n for n in quantized.graph.nodes if "dequantize" in str(n.target)][-1]
    check(edge, quantized, X, atol=output.args[1] * 1.01)


def test_vela_itself():
    """The stock partitioner takes an argmax that Vela cannot place on the U55."""

    class ArgMax(torch.nn.Module):
        def forward(self, x):
            return (x + x).argmax(1).to(torch.int32)

    x = torch.randint(-50, 50, (1, 4, 6, 6), dtype=torch.int32).to(torch.int8)
    with arm_ext.patched(only=[FIX]):
        edge, covered, (said,) = run(lambda: lower(ArgMax(), (x,), U55))
    assert "aten.argmax.default" in covered.cpu_ops
    assert "ArgMax) could not run on NPU" in said


def test_a_crash_of_vela(monkeypatch):
    stock = vela.main.__wrapped__

    def crash(argv):
        block = TosaGraph.GetRootAs(Path(argv[-1]).read_bytes(), 0).Regions(0).Blocks(0)
        ops = {block.Operators(i).Op() for i in range(block.OperatorsLength())}
        if tosa_serializer.Op.MAXIMUM in ops:
            os.kill(os.getpid(), signal.SIGSEGV)
        return stock(argv)

    class Maximum(torch.nn.Module):
        def forward(self, x):
            return torch.maximum(x + x, x), x * 3

    x = torch.tensor([[3, -4, 5]], dtype=torch.int32)
    monkeypatch.setattr(vela.main, "__wrapped__", crash)
    edge, covered, (said,) = run(lambda: lower(Maximum(), (x,), U85))
    assert covered.cpu_ops == ("aten.maximum.default",)
    assert "Vela crashed: SIGSEGV" in said
    assert all(map(torch.equal, verify.run(edge, x), Maximum()(x)))


def test_a_dynamic_batch():
    """Beside the public case: the numbers, at another batch than the example's."""
    module = torch.nn.Conv2d(3, 4, 3).eval()
    batch = torch.export.Dim("batch", min=2, max=16)

    def lower_it():
        x = torch.randn(3, 3, 8, 8)
        return lower(module, (x,), TARGETS["vgf"], dynamic_shapes=({0: batch},))

    edge, covered, (said,) = run(lower_it)
    assert covered.cpu_ops == ("aten.convolution.default",)
    assert "element count" in said
    check(edge, module, torch.randn(5, 3, 8, 8))


def test_only_the_method_that_fails_is_changed(monkeypatch):
    class Tanh(torch.nn.Module):
        def forward(self, x):
            return torch.tanh(x)

    def lower_both():
        return to_edge_transform_and_lower(
            {
                "bad": torch.export.export(Net().eval(), (X,)),
                "good": torch.export.export(Tanh(), (X,)),
            },
            partitioner=[VGF.partitioner()],
            compile_config=CONFIG,
        )

    stock = lower_both()
    reject(monkeypatch, "vgf", tosa_serializer.Op.SIN)
    edge, _, (said,) = run(lower_both)
    assert "1 node " in said
    assert coverage(edge, "bad").cpu_ops == ("aten.sin.default",)
    (before,) = stock.exported_program("good").graph_module.children()
    (after,) = edge.exported_program("good").graph_module.children()
    assert before.processed_bytes == after.processed_bytes


def test_in_a_branch(monkeypatch):
    class Branch(torch.nn.Module):
        def forward(self, x):
            return torch.cond(
                x.sum() > 0, lambda x: torch.sin(x) + x, lambda x: x * 2, (x,)
            )

    reject(monkeypatch, "vgf", tosa_serializer.Op.SIN)
    edge, covered, (said,) = run(lambda: whole(Branch(), X))
    assert "aten.sin.default" in covered.cpu_ops
    check(edge, Branch(), X, -X)


@pytest.mark.parametrize(
    "error",
    [RuntimeError("always"), SystemExit(2), MemoryError(), KeyboardInterrupt()],
    ids=repr,
)
def test_an_error_with_any_program_is_raised(error, monkeypatch):
    reject(monkeypatch, "vgf", None, error)
    with pytest.raises(type(error)) as raised:
        whole(Net(), X)
    assert raised.value is error


def test_a_missing_converter_and_a_bad_flag_are_raised(monkeypatch):
    monkeypatch.setenv("MODEL_CONVERTER_PATH", "/nowhere/model-converter")
    with arm_ext.patched(disable=["model-converter"]), pytest.raises(RuntimeError):
        whole(Net(), X)
    spec = EthosUCompileSpec("ethos-u85-256", memory_mode="Nonsense")
    program = torch.export.export(Add(), (torch.ones(4, dtype=torch.int32),))
    with pytest.raises(BaseException, match="Nonsense"):
        to_edge_transform_and_lower(program, partitioner=[EthosUPartitioner(spec)])


class Add(torch.nn.Module):
    def forward(self, x):
        return x + x


def test_strict_mode_raises_what_stock_raises(monkeypatch):
    reject(monkeypatch, "vgf", tosa_serializer.Op.SIN)
    with arm_ext.patched(strict=True) as status:
        (row,) = [row for row in status if row.fix == FIX]
        assert row.state is arm_ext.State.DISABLED and "strict" in row.reason
        with pytest.raises(RuntimeError, match=WORDS):
            whole(Net(), X)


def test_strict_mode_by_the_environment(monkeypatch):
    arm_ext.revert()
    monkeypatch.setenv("ARM_EXT_STRICT", "1")
    arm_ext._apply_from_environment()
    assert [r.fix for r in arm_ext.status() if "strict" in r.reason] == [FIX]


@pytest.mark.parametrize("target", [VGF, U85], ids=["vgf", "u85"])
def test_programs_that_lower_are_left_alone(target):
    module = Net() if target is VGF else quantize(Net(), (X,), target)
    edge, _, said = run(lambda: lower(module, (X,), target))
    with arm_ext.patched(disable=[FIX]):
        without, _, _ = run(lambda: lower(module, (X,), target))
    assert said == []
    assert edge.to_executorch().buffer == without.to_executorch().buffer
