# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``verify.run``: lowered programs give eager's numbers in Python."""

import threading
from dataclasses import replace

import arm_ext
import pytest
import torch
from arm_ext import verify
from arm_ext.targets import lower, quantize, Target, TARGETS
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.backends.arm.vgf import backend as vgf_backend
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from torch.export import export

# float32 on both sides, a handful of ops: rounding only.
FP32 = {"rtol": 1e-5, "atol": 1e-6}


class Split(torch.nn.Module):
    """Two delegates around an op on the CPU, with nested outputs."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        y = self.linear(x)
        angle = torch.atan2(y, y + 2.0)
        return {"angle": angle * 3.0, "rest": (y * 2.0, [angle])}


class Counter(torch.nn.Module):
    """A buffer that each call changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x):
        self.count.add_(x)
        return self.count * 2.0


class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(
            x.sum() > 0,
            lambda a: torch.atan2(a * 5.0, a) * 2.0,
            lambda a: a * 3.0,
            (x,),
        )


def conv_relu():
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()
    return torch.nn.Sequential(*layers).eval(), (torch.randn(1, 3, 8, 8),)


def lower_tosa(module, inputs, spec):
    return to_edge_transform_and_lower(
        export(module, inputs), partitioner=[TOSAPartitioner(TosaCompileSpec(spec))]
    )


def step(module):
    """The quantisation step of the output of a quantized module."""
    output = next(n for n in module.graph.nodes if n.op == "output")
    return next(iter(output.all_input_nodes)).args[1]


@pytest.fixture(scope="module")
def split():
    torch.manual_seed(0)
    module, x = Split().eval(), torch.randn(4, 8)
    return module, x, lower(module, (x,), TARGETS["vgf"])


def test_nested_outputs_of_several_delegates_and_cpu_ops(split):
    module, x, edge = split
    torch.testing.assert_close(verify.run(edge, x), module(x), **FP32)


def test_exported_program_instead_of_the_manager(split):
    module, x, edge = split
    got = verify.run(edge.exported_program(), x)
    torch.testing.assert_close(got, module(x), **FP32)


def test_run_leaves_the_program_as_it_was(split):
    _, x, edge = split
    before = edge.exported_program().graph_module.code
    verify.run(edge, x)
    assert edge.exported_program().graph_module.code == before


def test_executable_runs_again_with_other_inputs(split):
    module, x, edge = split
    runnable = verify.executable(edge)
    for value in (x, -x, x * 100):
        torch.testing.assert_close(runnable(value), module(value), **FP32)


def test_delegates_run_on_the_reference_model_not_eagerly(split):
    stand_ins = [
        m
        for m in verify.executable(split[2]).modules()
        if isinstance(m, verify.ReferenceDelegate)
    ]
    assert len(stand_ins) == 2 and all(m.tosa[4:8] == b"TOSA" for m in stand_ins)


def test_tosa_backend_float_and_integer():
    module, inputs = conv_relu()
    edge = lower_tosa(module, inputs, "TOSA-1.0+FP")
    torch.testing.assert_close(verify.run(edge, *inputs), module(*inputs), **FP32)

    quantized = quantize(module, inputs, TARGETS["vgf-int"])
    edge = lower_tosa(quantized, inputs, "TOSA-1.0+INT")
    got = verify.run(edge, *inputs)
    torch.testing.assert_close(
        got, quantized(*inputs), rtol=0, atol=1.001 * step(quantized)
    )


@pytest.mark.parametrize("target", ["vgf", "vgf-int", "ethos-u85-256", "ethos-u55-128"])
def test_quantized_within_one_step(target):
    module, inputs = conv_relu()
    quantized = quantize(module, inputs, TARGETS[target])
    edge = lower(quantized, inputs, TARGETS[target])
    got = verify.run(edge, *inputs)
    torch.testing.assert_close(
        got, quantized(*inputs), rtol=0, atol=1.001 * step(quantized)
    )


def test_rebuilt_tosa_is_what_the_backend_compiled(tmp_path):
    module, inputs = conv_relu()

    class Dumping(Target):
        def compile_spec(self):
            return super().compile_spec().dump_intermediate_artifacts_to(str(tmp_path))

    edge = lower(module, inputs, Dumping("vgf"))
    (delegate,) = (
        m
        for m in edge.exported_program().graph_module.modules()
        if hasattr(m, "processed_bytes")
    )
    (dumped,) = tmp_path.glob("*.tosa")
    assert verify.tosa_of(delegate) == dumped.read_bytes()


def test_channels_last_input():
    module, (x,) = conv_relu()
    x = x.repeat(2, 1, 1, 1).to(memory_format=torch.channels_last)
    module = module.to(memory_format=torch.channels_last)
    edge = lower(module, (x,), TARGETS["vgf"])
    torch.testing.assert_close(verify.run(edge, x), module(x), **FP32)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_delegates_in_branches(sign):
    module, x = Branches().eval(), sign * torch.rand(4, 8)
    edge = lower(module, (x,), TARGETS["vgf"])
    torch.testing.assert_close(verify.run(edge, x), module(x), **FP32)
    runnable = verify.executable(edge)
    names = [
        name
        for name, m in runnable.named_modules()
        if isinstance(m, verify.ReferenceDelegate)
    ]
    assert any(name.startswith("submodule_") for name in names)


def test_mutable_buffer_keeps_its_state():
    x = torch.arange(4.0)
    edge = lower(Counter().eval(), (x,), TARGETS["vgf"])
    runnable = verify.executable(edge)
    for calls in (1, 2, 3):
        torch.testing.assert_close(runnable(x), x * 2 * calls)
    # A new module starts from the program's own state.
    torch.testing.assert_close(verify.run(edge, x), x * 2)


def test_methods_of_one_program():
    torch.manual_seed(0)
    x = torch.randn(4, 8)
    modules = {"encode": torch.nn.Linear(8, 3).eval(), "decode": Split().eval()}
    edge = to_edge_transform_and_lower(
        {name: export(module, (x,)) for name, module in modules.items()},
        partitioner={name: [TARGETS["vgf"].partitioner()] for name in modules},
    )
    for name, module in modules.items():
        got = verify.run(edge, x, method=name)
        torch.testing.assert_close(got, module(x), **FP32)


def test_foreign_backend_is_named():
    module, inputs = conv_relu()
    edge = to_edge_transform_and_lower(
        export(module, inputs), partitioner=[XnnpackPartitioner()]
    )
    with pytest.raises(ValueError, match="XnnpackBackend.*VgfBackend"):
        verify.run(edge, *inputs)


def test_output_of_another_dtype_than_declared_is_an_error(split):
    _, x, edge = split
    runnable = verify.executable(edge)
    delegate = next(
        m for m in runnable.modules() if isinstance(m, verify.ReferenceDelegate)
    )
    node = delegate.output_node.args[0][0]
    value = node.meta["val"]
    node.meta["val"] = value.to(torch.int8)
    try:
        with pytest.raises(RuntimeError, match=rf"{node.name}.*int8.*float32"):
            runnable(x)
    finally:
        node.meta["val"] = value


def test_program_without_delegates():
    x = torch.randn(4)
    module = torch.nn.Identity()
    edge = lower(module.eval(), (x,), TARGETS["vgf"])
    torch.testing.assert_close(verify.run(edge, x), x)


def test_rebuilding_leaves_other_threads_their_compiler(split, monkeypatch):
    monkeypatch.setattr(vgf_backend, "vgf_compile", lambda *args: b"compiled")
    compiled = []

    class Details:
        """Compiles in another thread, then in the one that rebuilds."""

        @staticmethod
        def preprocess(program, compile_specs):
            def compile():
                spec = TARGETS["vgf"].compile_spec()
                return vgf_backend.VgfBackend._compile_tosa_flatbuffer(b"tosa", spec)

            thread = threading.Thread(target=lambda: compiled.append(compile()))
            thread.start()
            thread.join()
            compile()

    backend = replace(verify._BACKENDS["VgfBackend"], details=Details)
    monkeypatch.setitem(verify._BACKENDS, "VgfBackend", backend)
    delegate = next(
        m
        for m in split[2].exported_program().graph_module.modules()
        if hasattr(m, "processed_bytes")
    )
    assert verify.tosa_of(delegate) == b"tosa"
    assert compiled == [b"compiled"]


def test_stock_program_runs_too():
    module, inputs = conv_relu()
    with arm_ext.patched(only=()):
        edge = lower(module, inputs, TARGETS["vgf"])
        got = verify.run(edge, *inputs)
    torch.testing.assert_close(got, module(*inputs), **FP32)


@pytest.mark.parametrize("target", ["vgf", "ethos-u85-256"])
def test_a_dense_input_of_any_dim_order(target):
    """Neither contiguous nor channels last, on the way in and on the way out."""
    x = torch.randn(2, 3, 5, 6, generator=torch.Generator().manual_seed(0))
    x = x.permute(0, 2, 1, 3)
    module = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU()).eval()
    if TARGETS[target].is_ethosu:
        module = quantize(module, (x,), TARGETS[target])
    edge = lower(module, (x,), TARGETS[target])
    torch.testing.assert_close(
        verify.run(edge, x), module(x), atol=1e-5, rtol=0, check_stride=False
    )
