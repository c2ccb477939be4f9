# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A float program for a target that has integers only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from arm_ext.lowering.delegation_tags import tags_of
from torch.export import ExportedProgram
from torch.fx import Node

if TYPE_CHECKING:
    from executorch.backends.arm.tosa.partitioner import TOSAPartitioner

_QUANTIZERS = {
    "EthosUBackend": "EthosUQuantizer",
    "VgfBackend": "VgfQuantizer",
}


def unquantized(partitioner: TOSAPartitioner, program: ExportedProgram) -> str | None:
    """Return what to tell whoever lowers a float program for integers.

    Args:
        partitioner (TOSAPartitioner): The partitioner that tagged the program.
        program (ExportedProgram): A program after ``partition()``.

    Returns:
        str | None: None if the target has float, if anything was delegated, or if
            the program is quantized or computes nothing in float.

    """
    spec = partitioner.tosa_spec
    if spec.support_float() or not spec.support_integer():
        return None
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    if tags_of(calls) or any(map(_is_quantized, calls)):
        return None
    floats = sum(map(_is_float, calls))
    if not floats:
        return None
    quantizer = _QUANTIZERS.get(partitioner.delegation_spec.backend_id, "TOSAQuantizer")
    return (
        f"{spec} has integers only, and all {floats} float ops stay on the CPU: the "
        "program is not quantized. Quantize it before lowering: prepare_pt2e("
        f"exported.module(), {quantizer}(compile_spec).set_global("
        "get_symmetric_quantization_config())), run it on sample inputs, convert_pt2e, "
        "and export again."
    )


def _is_quantized(node: Node) -> bool:
    # By name: a program handed to partition() itself may still be in ATen.
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.name.startswith("quantized_decomposed::")


def _is_float(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point
