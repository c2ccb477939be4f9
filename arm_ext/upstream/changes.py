# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Each fix as a change to executorch, or the reason why it is none."""

from arm_ext.fix import Fix
from arm_ext.upstream.change import Change, Hunk, Pass

_ANNOTATOR = "quantizer/quantization_annotator.py"
_QUANTIZER = "quantizer/quantizer_support.py"
_LISTS = "operator_support/tosa_profile_supported_op_lists.py"
_CHECKS = "operator_support/tosa_supported_operators.py"
_TABLES = "_passes/insert_table_ops.py"
_PARTITIONER = "tosa/partitioner.py"


def _accept(*ops: str) -> tuple[Hunk, ...]:
    """Add edge ops to the lists of what each profile has."""
    lines = "".join(f"    exir_ops.edge.aten.{op},\n" for op in ops)
    return tuple(
        Hunk(_LISTS, f"TOSA_PRO_{profile}_SupportList: Final[Set] = {{\n", lines)
        for profile in ("INT", "FP")
    )


def _check(module: str, name: str, arguments: str) -> Hunk:
    """Ask a check of ours before those that reject; it imports the module itself."""
    return Hunk(
        _CHECKS,
        "    checks.append(CheckKnownUnsupportedTOSASemantics(reporter))\n",
        f"    from executorch.backends.arm.operator_support.{module} import (\n"
        f"        {name},\n"
        "    )\n\n"
        f"    checks.append({name}({arguments}))\n",
    )


MISH = Change(
    title="Lower mish in one delegate",
    body="""\
aten.mish was in no list of the quantizer, of the operators that are not
decomposed or of the TABLE operators. It was decomposed into softplus, tanh
and mul: float operators on the CPU in a quantized graph, some 24 operators
in a float one.

Treat it as SiLU: annotate it one to one, keep it whole and lower it to a
TABLE. In float, DecomposeMishPass computes it by a quotient of polynomials
in exp(x), without a cancellation where TOSA TANH underflows.
""",
    passes=(
        Pass(
            "decompose_mish_pass",
            "DecomposeMishPass",
            "DecomposeMishPass()",
            "DecomposeGeluPass()",
        ),
    ),
    hunks=(
        Hunk(
            _QUANTIZER,
            "        (torch.ops.aten.silu_.default,),\n",
            "        (torch.ops.aten.mish.default,),\n"
            "        (torch.ops.aten.mish_.default,),\n",
        ),
        Hunk(
            _ANNOTATOR,
            "    torch.ops.aten.silu_.default,\n",
            "    torch.ops.aten.mish.default,\n    torch.ops.aten.mish_.default,\n",
        ),
        Hunk(
            _PARTITIONER,
            "        ops_to_not_decompose_if_quant_op = {\n",
            "            torch.ops.aten.mish.default,\n",
        ),
        Hunk(
            _PARTITIONER,
            "        ops_to_not_decompose_if_fp = {\n            "
            "torch.ops.aten.celu.default,\n",
            "            torch.ops.aten.mish.default,\n",
        ),
        Hunk(
            _TABLES,
            "        exir_ops.edge.aten.silu.default: torch.nn.functional.silu,\n",
            "        exir_ops.edge.aten.mish.default: torch.nn.functional.mish,\n",
        ),
        *_accept("mish.default"),
    ),
    tests=("test_mish.py",),
)

ISNAN_ISINF_FMOD = Change(
    title="Lower isnan, isinf and fmod by a number",
    body="""\
The three were in no list and split the graph. DecomposeIsNanIsInfPass and
DecomposeFmodPass bring them to TOSA, exact in every bit; an int8 fmod is
annotated one to one and becomes a TABLE, as remainder does.

IsNanIsInfFmodCheck leaves to the CPU, with the reason in the report, what
cannot be exact: a divisor that is a tensor, below 2^-32, infinite or NaN, a
16-bit quantized fmod, whose TABLE interpolates over its jumps, and integers
other than int32.
""",
    sources=(
        "partitioner/reasoned_check.py",
        "partitioner/isnan_isinf_fmod_check.py",
        "quantizer/fmod.py",
    ),
    passes=(
        Pass(
            "decompose_isnan_isinf_pass",
            "DecomposeIsNanIsInfPass",
            "DecomposeIsNanIsInfPass()",
            "DecomposeGeluPass()",
        ),
        Pass(
            "decompose_fmod_pass",
            "DecomposeFmodPass",
            "DecomposeFmodPass()",
            "DecomposeGeluPass()",
        ),
    ),
    hunks=(
        Hunk(
            _QUANTIZER,
            "from executorch.backends.arm.quantizer.quantization_annotator import (\n",
            "from executorch.backends.arm.quantizer.fmod import Int8Activations\n",
            before=True,
        ),
        Hunk(
            _QUANTIZER,
            "TOSA_QUANTIZER_SUPPORT_DICT[(torch.ops.aten.to.dtype,)] = CastCheck\n",
            "TOSA_QUANTIZER_SUPPORT_DICT[(torch.ops.aten.fmod.Scalar,)] = "
            "Int8Activations\n",
        ),
        Hunk(
            _ANNOTATOR,
            "    torch.ops.aten.remainder.Scalar,\n",
            "    torch.ops.aten.fmod.Scalar,\n",
        ),
        Hunk(
            _TABLES,
            "        exir_ops.edge.aten.remainder.Scalar,\n    }\n",
            "        exir_ops.edge.aten.fmod.Scalar,\n",
            before=True,
        ),
        Hunk(
            _TABLES,
            "                case exir_ops.edge.aten.remainder.Scalar:\n",
            "                case exir_ops.edge.aten.fmod.Scalar:\n"
            "                    modulus = cast(float | int, node.args[1])\n"
            "                    return lambda x: torch.fmod(x, modulus).flatten()\n",
            before=True,
        ),
        *_accept("isnan.default", "isinf.default", "fmod.Scalar"),
        _check("isnan_isinf_fmod_check", "IsNanIsInfFmodCheck", "tosa_spec, reporter"),
    ),
    tests=("test_isnan_isinf.py", "test_fmod.py"),
)

ROLL_AND_TRIANGLE = Change(
    title="Quantize roll, triu and tril without an index or a computed mask",
    body="""\
roll was decomposed to an index computed in int64, which splits the graph;
triu was not annotated, and the mask of a tril was computed by the graph and
quantized. Before annotation DecomposeRollPass makes slices and a cat, and
DecomposeTrianglePass a selection by a constant mask, which share their
qparams.
""",
    sources=("passes/constant_evaluator.py", "passes/module_constants.py"),
    passes=(
        Pass(
            "decompose_roll_pass",
            "DecomposeRollPass",
            "DecomposeRollPass(tfa_pass=True)",
            "DecomposeTrilPass(tfa_pass=True)",
        ),
        Pass(
            "decompose_triangle_pass",
            "DecomposeTrianglePass",
            "DecomposeTrianglePass(tfa_pass=True)",
            "DecomposeTrilPass(tfa_pass=True)",
        ),
    ),
    tests=("test_roll.py", "test_triu.py"),
)

# A pattern is seen only in nodes that follow each other: no constant in between.
_ANNOTATED = """\
            from executorch.backends.arm.quantizer.conv_transpose import (
                constants_first,
                CONV_TRANSPOSE1D,
            )

            nodes = graph_module.graph.nodes
            one_dimensional = any(node.target == CONV_TRANSPOSE1D for node in nodes)
            graph_module = self._transform_graph_module(graph_module)
            if one_dimensional:
                constants_first(graph_module.graph)
                graph_module.recompile()
            return graph_module
"""

CONV_TRANSPOSE1D = Change(
    title="Lower ConvTranspose1d, dilated and U55's transposed convolutions",
    body="""\
The quantizer, the support check and RewriteConvPass knew conv_transpose2d
only, without dilation. Before annotation NormalizeConvTransposePass makes a
2-D one of one group of it, so that it is annotated and fused as that. In the
backend's pipeline RewriteTransposedConvPass does the same for a float one,
puts the dilation into the kernel, and inserts zeros in front of a plain
convolution where Ethos-U55 has no TRANSPOSE_CONV2D for it.

TransposedConvCheck leaves the rest to the CPU, with the reason: dynamic
shapes, a weight that is computed at run time, and the limits of Vela.
TRANSPOSE_CONV2D of half precision accumulates in FP32, as CONV2D does.
""",
    sources=(
        "passes/transposed_conv.py",
        "partitioner/reasoned_check.py",
        "partitioner/transposed_conv_check.py",
        "quantizer/conv_transpose.py",
    ),
    passes=(
        Pass(
            "normalize_conv_transpose_pass",
            "NormalizeConvTransposePass",
            "NormalizeConvTransposePass(tfa_pass=True)",
            "DecomposeIndexCopyPass(tfa_pass=True)",
        ),
        Pass(
            "rewrite_transposed_conv_pass",
            "RewriteTransposedConvPass",
            "RewriteTransposedConvPass(exported_program)",
            "DecomposeGroupedConvPass()",
        ),
    ),
    hunks=(
        Hunk(
            "_passes/arm_pass_manager.py",
            "            return GraphModulePassManager(self.passes)(graph_module)"
            ".graph_module\n",
            _ANNOTATED,
            instead=True,
            other="            return self._transform_graph_module(graph_module)\n",
        ),
        Hunk(
            "quantizer/arm_quantizer.py",
            "from executorch.backends.arm.quantizer.quantizer_support import (\n",
            "from executorch.backends.arm.quantizer.conv_transpose import PATTERNS\n",
            before=True,
        ),
        Hunk(
            "quantizer/arm_quantizer.py",
            "logger = logging.getLogger(__name__)\n",
            "\nTOSA_QUANTIZER_SUPPORT_DICT.update(PATTERNS)\n",
        ),
        Hunk(
            "quantizer/arm_quantizer_utils.py",
            "    PARAMETER_TARGETS = {\n",
            "        torch.ops.aten.conv_transpose1d.default,\n",
        ),
        Hunk(
            "operator_support/convolution_support.py",
            "from executorch.backends.arm.tosa import TosaSpecification\n",
            "from executorch.backends.arm.operator_support.transposed_conv_check import "
            "(\n    needs_rewrite,\n)\n",
            before=True,
        ),
        Hunk(
            "operator_support/convolution_support.py",
            "        transposed, output_padding, groups = self._get_conv_params(node)\n",
            "        if needs_rewrite(node, tosa_spec):\n            return True\n",
            before=True,
        ),
        Hunk(
            "operators/op_tosa_transpose_conv2d.py",
            "        acc_type = output.dtype\n",
            "        if acc_type in (ts.DType.BF16, ts.DType.FP16):\n"
            "            acc_type = ts.DType.FP32\n",
        ),
        _check(
            "transposed_conv_check",
            "TransposedConvCheck",
            "exported_program, tosa_spec, reporter",
        ),
    ),
    tests=("test_transpose_conv1d.py",),
)

FLOAT_TO_INT_CAST = Change(
    title="Truncate in every cast from a float to an integer",
    body="""\
TOSA CAST rounds to the nearest, PyTorch drops the fraction.
DecorateFp32toInt32CastingPass sees to fp32 to int32 alone, so that a cast to
int8 or int16, or from fp16 or bf16 to any integer, gave -2 for -1.5.
TruncateFloatCastPass does the same for these.
""",
    passes=(
        Pass(
            "truncate_float_cast_pass",
            "TruncateFloatCastPass",
            "TruncateFloatCastPass()",
            "DecorateFp32toInt32CastingPass()",
        ),
    ),
    tests=("test_float_cast.py",),
)

CHANGES = {
    "mish": MISH,
    "conv-transpose1d": CONV_TRANSPOSE1D,
    "isnan-isinf-fmod": ISNAN_ISINF_FMOD,
    "roll-and-triangle": ROLL_AND_TRIANGLE,
    "float-to-int-cast": FLOAT_TO_INT_CAST,
}

_BEFORE_PARTITION = (
    "it rewrites the edge program between to_edge and partition(), for which "
    "executorch has no hook: a partitioner must not change the program"
)
_WRAPPER = (
    "it wraps functions of executorch from outside, and what that changes is not "
    "written as hunks"
)

# Fixes that are no change to executorch's tree for a reason of their own.
REFUSED = {
    "model-converter": "it mends the machine's C library, which is no part of the tree",
    "topk": "its indices are carried in int32 by what argmin-argmax does, which has "
    "no place upstream",
}


def why_not(fix: Fix) -> str:
    """Return why a fix is no change that can be written to executorch."""
    if fix.name in REFUSED:
        return REFUSED[fix.name]
    rewrites = hasattr(fix.load(), "rewrite_before_partition")
    return _BEFORE_PARTITION if rewrites else _WRAPPER
