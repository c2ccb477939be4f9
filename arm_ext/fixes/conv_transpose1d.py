# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""ConvTranspose1d stays on the CPU.

The gap
    The quantizer knows ``conv_transpose2d`` only, and so do the support check
    ("Only 2D") and ``RewriteConvPass``. Beside it a dilation is rejected, a grouped
    ``conv_transpose2d`` with per-channel weights fails in its Q/DQ, a bf16 one asks
    TRANSPOSE_CONV2D for an accumulator that it does not have, and a 16 bit one
    stops Vela for Ethos-U55.
What is done
    Before annotation ``NormalizeConvTransposePass`` makes a 2-D one of one group of
    it, so that it is annotated and fused as that. In the backend's pipeline
    ``RewriteTransposedConvPass`` does the same for a float one, takes the dilation
    away, and inserts zeros in front of a plain convolution where Ethos-U55 has no
    TRANSPOSE_CONV2D for it. Half-precision ones accumulate in fp32, as CONV2D does.
    The program is the caller's until it is in the backend: every flow is served.
What is refused
    Dynamic shapes, a weight that is computed at run time or captured by a branch,
    Vela's limits on Ethos-U55, and groups in quantization-aware training, whose
    block-diagonal weight would not stay so. Each with its reason.

"""

from __future__ import annotations

from typing import Any

import tosa_serializer as ts
from arm_ext import fix
from arm_ext.fixes._passes import insert_passes
from arm_ext.fixes._support import check_last
from arm_ext.operators import FLOAT, Operator, QUANTIZED, U55, U85, VGF
from arm_ext.partitioner.transposed_conv_check import needs_rewrite, TransposedConvCheck
from arm_ext.passes.normalize_conv_transpose_pass import (
    CONV_TRANSPOSE1D,
    NormalizeConvTransposePass,
)
from arm_ext.passes.rewrite_transposed_conv_pass import RewriteTransposedConvPass
from arm_ext.patcher import Patcher
from arm_ext.quantizer.conv_transpose import constants_first, PATTERNS
from executorch.backends.arm._passes import ArmPassManager, DecomposeGroupedConvPass
from executorch.backends.arm.quantizer.quantizer_support import (
    TOSA_QUANTIZER_SUPPORT_DICT,
)
from torch.export import ExportedProgram

OPERATORS = (
    Operator(
        "aten.conv_transpose1d",
        FLOAT,
        (VGF,),
        "static shapes, constant weight",
        RewriteTransposedConvPass,
    ),
    Operator(
        "aten.conv_transpose1d",
        QUANTIZED,
        (VGF, U85),
        "static shapes, constant weight; one group in quantization-aware training",
        NormalizeConvTransposePass,
    ),
    Operator(
        "aten.conv_transpose1d",
        QUANTIZED,
        (U55,),
        "as on Ethos-U85; sizes up to 65536 and dilated kernels up to 4096 after the "
        "zero insertion",
        RewriteTransposedConvPass,
    ),
    Operator(
        "aten.conv_transpose2d",
        QUANTIZED,
        (VGF, U85, U55),
        "as aten.conv_transpose1d, where stock takes none: dilation, per-channel "
        "groups, 16 bit and strides above 2 on Ethos-U55",
        RewriteTransposedConvPass,
    ),
)

_ARM = "executorch.backends.arm"


def _normalize(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    (module,) = (*args, *kwargs.values())
    one_dimensional = any(n.target == CONV_TRANSPOSE1D for n in module.graph.nodes)
    instance.add_pass(NormalizeConvTransposePass(tfa_pass=True))
    result = wrapped(module)
    if one_dimensional:
        constants_first(result.graph)
        result.recompile()
    return result


def _insert_rewrite(manager: ArmPassManager, program: ExportedProgram) -> None:
    manager.insert_passes_before(
        DecomposeGroupedConvPass, [RewriteTransposedConvPass()]
    )


def _take_what_is_rewritten(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> bool:
    node, spec = (*args, *kwargs.values())
    return needs_rewrite(node, spec) or wrapped(*args, **kwargs)


def _accumulate_in_fp32(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    attribute = wrapped(*args, **kwargs)

    def set_attribute(*, acc_type: Any, **rest: Any) -> Any:
        half = acc_type in (ts.DType.BF16, ts.DType.FP16)
        return attribute(acc_type=ts.DType.FP32 if half else acc_type, **rest)

    return set_attribute


def needs(installed: fix.Installed) -> fix.Need:
    del installed
    if (CONV_TRANSPOSE1D,) in TOSA_QUANTIZER_SUPPORT_DICT:
        return fix.already_fixed("the quantizer annotates conv_transpose1d")
    return fix.apply()


def install(patcher: Patcher) -> None:
    # Annotate.
    patcher.extend(
        f"{_ARM}.quantizer.quantizer_support:TOSA_QUANTIZER_SUPPORT_DICT", PATTERNS
    )
    patcher.extend(
        f"{_ARM}.quantizer.arm_quantizer_utils:PatternQuantizer.PARAMETER_TARGETS",
        (CONV_TRANSPOSE1D,),
    )
    patcher.wrap(
        f"{_ARM}._passes.arm_pass_manager:"
        "ArmPassManager.transform_for_annotation_pipeline",
        _normalize,
        parameters=("self", "graph_module"),
    )
    # Accept.
    patcher.wrap(
        f"{_ARM}.operator_support.convolution_support:"
        "ConvolutionSupported.is_node_tosa_supported",
        _take_what_is_rewritten,
        parameters=("self", "node", "tosa_spec"),
    )
    check_last(
        patcher,
        lambda partitioner, program, reporter, accepts: TransposedConvCheck(
            program, partitioner.tosa_spec, reporter
        ),
    )
    # Lower.
    insert_passes(patcher, _insert_rewrite)
    patcher.wrap(
        f"{_ARM}.operators.op_tosa_transpose_conv2d:"
        "TransposeConv2dVisitor._get_attr_func",
        _accumulate_in_fp32,
        parameters=("self", "attr"),
    )
