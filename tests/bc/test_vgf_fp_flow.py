# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""VGF in floating point, from documented public calls alone."""

import torch
from executorch.backends.arm import VgfBackend, VgfCompileSpec, VgfPartitioner
from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
from executorch.extension.export_util.utils import save_pte_program


class Head(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.project(x)) * 2.0


def exported() -> torch.export.ExportedProgram:
    return torch.export.export(Head().eval(), (torch.randn(2, 8),))


def test_compile_spec(tmp_path):
    spec = VgfCompileSpec("TOSA-1.0+FP")
    assert spec == VgfCompileSpec("TOSA-1.0+FP")
    assert spec != VgfCompileSpec("TOSA-1.0+INT")
    assert "VgfCompileSpec" in repr(spec)
    spec.dump_intermediate_artifacts_to(str(tmp_path))
    assert spec.dump_debug_info(VgfCompileSpec.DebugMode.TOSA) is spec


def test_partitioner():
    partitioner = VgfPartitioner(VgfCompileSpec("TOSA-1.0+FP"))
    program = exported()
    kept, keep = partitioner.ops_to_not_decompose(program)
    assert isinstance(kept, list)
    assert keep is None or callable(keep)
    assert partitioner.partition(program).tagged_exported_program is program


def test_lowers_to_one_delegate_and_a_file(tmp_path):
    assert isinstance(VgfBackend(), VgfBackend)
    spec = VgfCompileSpec("TOSA-1.0+FP")
    spec.dump_intermediate_artifacts_to(str(tmp_path / "artifacts"))
    edge = to_edge_transform_and_lower(
        programs=exported(), partitioner=[VgfPartitioner(spec)]
    )
    calls = [n for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    assert sum("executorch_call_delegate" in str(n.target) for n in calls) == 1

    program = edge.to_executorch(
        config=ExecutorchBackendConfig(extract_delegate_segments=False)
    )
    save_pte_program(program, str(tmp_path / "head.pte"))
    assert (tmp_path / "head.pte").read_bytes() == program.buffer
    assert any((tmp_path / "artifacts").rglob("*.tosa"))
