# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Quantized, for VGF and Ethos-U, from documented public calls alone."""

import pytest
import torch
from executorch.backends.arm import (
    EthosUCompileSpec,
    EthosUPartitioner,
    EthosUQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
    VgfCompileSpec,
    VgfPartitioner,
    VgfQuantizer,
)
from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
from executorch.extension.export_util.utils import save_pte_program
from torchao.quantization.pt2e.quantize_pt2e import (
    convert_pt2e,
    prepare_pt2e,
    prepare_qat_pt2e,
)


def vgf():
    return VgfCompileSpec("TOSA-1.0+INT"), VgfQuantizer, VgfPartitioner


def u55():
    spec = EthosUCompileSpec(
        "ethos-u55-128",
        system_config="Ethos_U55_High_End_Embedded",
        memory_mode="Shared_Sram",
        extra_flags=["--optimise=Size"],
    )
    return spec, EthosUQuantizer, EthosUPartitioner


def u85():
    return EthosUCompileSpec("ethos-u85-256"), EthosUQuantizer, EthosUPartitioner


TARGETS = pytest.mark.parametrize("target", [vgf, u55, u85])


class Eyes(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, kernel_size=3)
        self.relu = torch.nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.conv(x))


def inputs() -> tuple[torch.Tensor]:
    return (torch.randn(1, 3, 8, 8),)


def captured() -> torch.fx.GraphModule:
    """Return the model as quantization takes it; without guards, for stock."""
    return torch.export.export(Eyes().eval(), inputs()).module(check_guards=False)


def quantized(quantizer, prepare=prepare_pt2e) -> torch.export.ExportedProgram:
    quantizer.set_global(
        get_symmetric_quantization_config(is_qat=prepare is prepare_qat_pt2e)
    )
    prepared = prepare(captured(), quantizer)
    prepared(*inputs())
    return torch.export.export(convert_pt2e(prepared), inputs())


@TARGETS
def test_compile_spec(target, tmp_path):
    spec = target()[0]
    assert spec == target()[0]
    assert type(spec).__name__ in repr(spec)
    spec.dump_intermediate_artifacts_to(str(tmp_path))
    assert spec.dump_debug_info(type(spec).DebugMode.TOSA) is spec


@TARGETS
def test_quantizer(target):
    spec, quantizer_of, _ = target()
    quantizer = quantizer_of(spec)
    symmetric = get_symmetric_quantization_config(is_per_channel=False)
    quantizer.set_global(symmetric)
    quantizer.set_io(get_symmetric_a16w8_quantization_config(is_per_channel=False))
    quantizer.set_module_name("conv", symmetric)
    quantizer.set_module_type(torch.nn.ReLU, symmetric)
    annotated = quantizer.annotate(quantizer.transform_for_annotation(captured()))
    quantizer.validate(annotated)


@TARGETS
def test_partitioner(target):
    spec, quantizer_of, partitioner_of = target()
    program = quantized(quantizer_of(spec))
    partitioner = partitioner_of(spec)
    kept, keep = partitioner.ops_to_not_decompose(program)
    assert isinstance(kept, list)
    assert keep is None or callable(keep)
    assert partitioner.partition(program).tagged_exported_program is program


@TARGETS
@pytest.mark.parametrize("prepare", [prepare_pt2e, prepare_qat_pt2e])
def test_lowers_to_one_delegate_and_a_file(target, prepare, tmp_path):
    spec, quantizer_of, partitioner_of = target()
    spec.dump_intermediate_artifacts_to(str(tmp_path / "artifacts"))
    edge = to_edge_transform_and_lower(
        programs=quantized(quantizer_of(spec), prepare),
        partitioner=[partitioner_of(spec)],
    )
    calls = [n for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    assert sum("executorch_call_delegate" in str(n.target) for n in calls) == 1

    program = edge.to_executorch(
        config=ExecutorchBackendConfig(extract_delegate_segments=False)
    )
    save_pte_program(program, str(tmp_path / "eyes.pte"))
    assert (tmp_path / "eyes.pte").read_bytes() == program.buffer
    assert any((tmp_path / "artifacts").rglob("*.tosa"))
