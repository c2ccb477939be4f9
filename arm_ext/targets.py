# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The targets that the command line and the tests lower to, by short name.

Everything here is plain use of ExecuTorch's public API: it is what a user
writes by hand, once.

"""

import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.backends.arm.quantizer import (
    EthosUQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
    VgfQuantizer,
)
from executorch.backends.arm.vgf import VgfCompileSpec, VgfPartitioner
from executorch.exir import (
    EdgeCompileConfig,
    EdgeProgramManager,
    to_edge_transform_and_lower,
)
from torch.export import export, ExportedProgram
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

QUANTIZATION: Mapping[str, Callable[[], Any]] = {
    "int8": lambda: get_symmetric_quantization_config(is_per_channel=True),
    "int8-per-tensor": lambda: get_symmetric_quantization_config(is_per_channel=False),
    "a16w8": get_symmetric_a16w8_quantization_config,
}


@dataclass(frozen=True)
class Target:
    """An Arm target.

    Attributes:
        name (str): ``vgf``, ``vgf-int`` or an Ethos-U accelerator name.
        tosa_spec (str | None): TOSA specification of a VGF target; None is the
            default of ``VgfCompileSpec``.

    """

    name: str
    tosa_spec: str | None = None

    @property
    def is_ethosu(self) -> bool:
        return self.name.startswith("ethos-u")

    def compile_spec(self) -> Any:
        if self.is_ethosu:
            return EthosUCompileSpec(self.name)
        return VgfCompileSpec(self.tosa_spec)

    def partitioner(self) -> Any:
        make = EthosUPartitioner if self.is_ethosu else VgfPartitioner
        return make(self.compile_spec())

    def quantizer(self, quantization: str) -> Any:
        """Return a quantizer with one of ``QUANTIZATION`` set for all ops."""
        make = EthosUQuantizer if self.is_ethosu else VgfQuantizer
        quantizer = make(self.compile_spec())
        return quantizer.set_global(QUANTIZATION[quantization]()) or quantizer


TARGETS = {
    target.name: target
    for target in (
        Target("vgf"),
        Target("vgf-fp", "TOSA-1.0+FP"),
        Target("vgf-bf16", "TOSA-1.0+FP+INT+int4+int16+bf16"),
        Target("vgf-int", "TOSA-1.0+INT+int16"),
        Target("ethos-u85-256"),
        Target("ethos-u55-128"),
    )
}


def quantize(
    module: torch.nn.Module,
    inputs: Sequence[Any],
    target: Target,
    quantization: str = "int8",
) -> torch.nn.Module:
    """Return the module quantized for ``target``, calibrated on ``inputs``."""
    exported = export(module.eval(), tuple(inputs)).module(check_guards=False)
    prepared = prepare_pt2e(exported, target.quantizer(quantization))
    prepared(*inputs)
    return convert_pt2e(prepared)


def lower(
    module: torch.nn.Module | ExportedProgram,
    inputs: Sequence[Any],
    target: Target,
    **export_options: Any,
) -> EdgeProgramManager:
    """Export a module and lower it to ``target``.

    Args:
        module (torch.nn.Module | ExportedProgram): A module in eval mode, a quantized one
            or an exported program.
        inputs (Sequence[Any]): Example inputs.
        target (Target): One of ``TARGETS`` or another.
        **export_options (Any): For ``torch.export.export``, such as
            ``dynamic_shapes``.

    """
    program = module
    if not isinstance(module, ExportedProgram):
        program = export(module, tuple(inputs), **export_options)
    with contextlib.redirect_stdout(io.StringIO()):  # Vela prints a summary
        return to_edge_transform_and_lower(
            program,
            partitioner=[target.partitioner()],
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
        )
