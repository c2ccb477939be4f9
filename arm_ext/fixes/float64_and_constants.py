# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What eager computes in float64, or from constants alone, stays on the CPU.

The gap
    ``pow.Scalar`` is in no list, and TOSA has no float64. So the frequencies of a
    timestep or rotary embedding, ``base ** (arange(n) / n)``, are computed on the
    CPU at every call, and so are causal masks, whose ``arange`` is int64. A Python
    number beside a float64 is rounded to float32 on the way to the edge dialect.
What is done
    Before partitioning, ``FoldConstantsPass`` computes such constants once, in their
    own dtype, and rounds once. ``NarrowFloat64Pass`` does in float32 what gives the
    same number there: one op that rounds, on values that float32 has.
    ``RewritePowScalarPass`` brings a computed exponent to TOSA's POW. Constants are
    folded before annotation too, and no float64 is annotated: quantizing one throws.
    ``CastToFloat64BeforeViewsPass`` has an input that float64 is computed from be
    neither quantized nor viewed in a delegate first.
    A number beside a float64 is made a float64.
What is refused
    Other float64 arithmetic at run time: a second rounding, or a constant that
    float32 has not, would give other digits. It stays on the CPU, with the reason in
    the partitioner's report.

"""

from __future__ import annotations

from typing import Any

import torch
from arm_ext import fix
from arm_ext.fixes._before_partition import rewrite_before_partition, run_pass, WhyNot
from arm_ext.fixes._passes import run_before_annotation
from arm_ext.fixes._support import check_first
from arm_ext.operators import FLOAT, Operator, VGF
from arm_ext.partitioner.float64_check import Float64Check, has_float64
from arm_ext.passes.cast_to_float64_before_views_pass import (
    CastToFloat64BeforeViewsPass,
)
from arm_ext.passes.fold_constants_pass import FoldConstantsPass
from arm_ext.passes.index_sources import is_cast
from arm_ext.passes.module_constants import ModuleConstants
from arm_ext.passes.narrow_float64_pass import is_narrowing, NarrowFloat64Pass
from arm_ext.passes.program_constants import ProgramConstants
from arm_ext.passes.rewrite_pow_scalar_pass import is_pow_scalar, RewritePowScalarPass
from arm_ext.patcher import Patcher
from executorch.backends.arm.operator_support.tosa_profile_supported_op_lists import (
    TOSA_PRO_FP_SupportList,
)
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import map_args, ProxyValue
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

_POW = exir_ops.edge.aten.pow.Scalar

OPERATORS = (
    Operator(
        "aten.pow",
        FLOAT,
        (VGF,),
        "scalar base, positive where the exponent is computed; bf16 needs the "
        "extension `bf16`",
        RewritePowScalarPass,
    ),
    *(
        Operator(
            op,
            (*FLOAT, "int32", "bool"),
            (VGF,),
            "static size; a bool of rank 2; bf16 needs the extension `bf16`",
            FoldConstantsPass,
        )
        for op in ("aten.triu", "aten.tril")
    ),
)


def needs(installed: fix.Installed) -> fix.Need:
    del installed
    if _POW in TOSA_PRO_FP_SupportList:
        return fix.already_fixed("the support lists have pow.Scalar")
    return fix.apply()


def install(patcher: Patcher) -> None:
    # Export.
    patcher.wrap(
        "executorch.exir.passes.scalar_to_tensor_pass:ScalarToTensorPass.call_operator",
        _keep_numbers_beside_float64,
        parameters=("self", "op", "args", "kwargs", "meta"),
    )
    # Annotate.
    run_before_annotation(patcher, lambda: _fold_what_is_not_quantized)
    run_before_annotation(patcher, lambda: CastToFloat64BeforeViewsPass(tfa_pass=True))
    patcher.wrap(
        "executorch.backends.arm.quantizer.arm_quantizer_utils:"
        "_mark_node_as_quantized",
        _annotate_no_float64,
        parameters=("node", "input_qspec_map", "output_qspec", "is_quantized"),
    )
    # Accept, and lower.
    check_first(patcher, lambda spec, program, reporter: Float64Check(reporter))
    rewrite_before_partition(patcher, _matches, _rewrite)


def _keep_numbers_beside_float64(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> Any:
    op, operands, options, meta = (*args, *kwargs.values())

    def widened(value: Any, formal: Any) -> Any:
        if not isinstance(value, float) or not isinstance(
            formal.type, torch.TensorType
        ):
            return value
        instance._modified = True
        with _disable_current_modes():  # no fake tensor
            return torch.tensor(value, dtype=torch.float64)

    if any(map(_is_float64, tree_leaves((operands, options)))):
        operands, options = map_args(op, widened, operands, options)
    return wrapped(op, operands, options, meta)


def _is_float64(value: Any) -> bool:
    tensor = value.data if isinstance(value, ProxyValue) else value
    return isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float64


def _fold_what_is_not_quantized(graph_module: GraphModule) -> PassResult | None:
    constants = ModuleConstants(graph_module, "_folded_constant")
    return FoldConstantsPass(_why_not_quantized, constants)(graph_module)


def _why_not_quantized(node: Node) -> str | None:
    if node.target == torch.ops.aten.pow.Scalar:
        return "the quantizer does not know pow.Scalar"
    if _leaves_float(node):
        return "what it makes of a float is not quantized"
    if _is_int_to_float(node):
        return "an integer that becomes a float is more exact than its quantization"
    return "a float64 is not quantized" if has_float64(node) else None


def _leaves_float(node: Node) -> bool:
    """Whether a node makes integers or bools of floats, as a mask does."""
    values = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if len(tensors) < len(values):
        return False
    made, *read = [tensor.is_floating_point() for tensor in tensors]
    return not made and any(read)


def _is_int_to_float(node: Node) -> bool:
    if node.target != torch.ops.aten.to.dtype:
        return False
    values = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
    floats = [isinstance(v, torch.Tensor) and v.is_floating_point() for v in values]
    return floats == [True, False]


def _annotate_no_float64(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> None:
    node = args[0] if args else kwargs["node"]
    if has_float64(node) or _is_input_of_float64(node):
        wrapped(node, {}, None, False)
    else:
        wrapped(*args, **kwargs)


def _is_input_of_float64(node: Node) -> bool:
    """Whether a program's input is read by float64 alone, with all its digits."""
    return (
        node.op == "placeholder"
        and bool(node.users)
        and all(has_float64(user) for user in node.users)
    )


def _matches(node: Node) -> bool:
    """Whether a node is where float64 begins or ends, or where constants begin."""
    if node.op != "call_function":
        return False
    if is_pow_scalar(node) or is_narrowing(node) or is_cast(node, torch.float64):
        return True
    return not node.all_input_nodes and isinstance(node.meta.get("val"), torch.Tensor)


def _rewrite(program: ExportedProgram, why_not: WhyNot) -> bool:
    constants = ProgramConstants(program, "folded_constant")
    changes = NarrowFloat64Pass, FoldConstantsPass, RewritePowScalarPass
    modified = [run_pass(change(why_not, constants), program) for change in changes]
    return run_pass(CastToFloat64BeforeViewsPass(), program) or any(modified)
