# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Each fix as a change to executorch, or the reason why it is none."""

from arm_ext.fix import Fix
from arm_ext.upstream.change import ARM, Change, Hunk, Pass
from arm_ext.upstream.lowering_changes import LOWERING_CHANGES, PARTITIONER

_ANNOTATOR = f"{ARM}/quantizer/quantization_annotator.py"
_QUANTIZER = f"{ARM}/quantizer/quantizer_support.py"
_LISTS = f"{ARM}/operator_support/tosa_profile_supported_op_lists.py"
_CHECKS = f"{ARM}/operator_support/tosa_supported_operators.py"
_TABLES = f"{ARM}/_passes/insert_table_ops.py"
_TOSA_QUANTIZER = f"{ARM}/quantizer/arm_quantizer.py"
_BUCK = f"{ARM}/quantizer/BUCK"


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


def _buck(module: str, user: str, *dependencies: str) -> tuple[Hunk, ...]:
    """Make a file of the quantizer a target; all other folders list theirs by glob."""
    lines = "".join(f'        "{name}",\n' for name in dependencies)
    return (
        Hunk(
            _BUCK,
            f'    srcs = ["{user}.py"],\n    deps = [\n',
            f'        ":{module}",\n',
            optional=True,
        ),
        Hunk(
            _BUCK,
            "# Exposed through __init__.py\n",
            "fbcode_target(\n    _kind = runtime.python_library,\n"
            f'    name = "{module}",\n    srcs = ["{module}.py"],\n'
            f"    deps = [\n{lines}    ],\n)\n\n",
            before=True,
            optional=True,
        ),
    )


_TRANSFORM = "        return self.quantizer.transform_for_annotation(model)\n"
_WITHOUT_GUARDS = """\
        return transform_without_guards(
            self.quantizer.transform_for_annotation, model
        )
"""


def _quantizer_import(line: str) -> Hunk:
    return Hunk(
        _TOSA_QUANTIZER,
        "from executorch.backends.arm.common.annotation_meta import "
        "ArmAnnotationInfo\n",
        line,
        before="_passes" in line,
    )


def _before_annotation(*statements: str) -> Hunk:
    """Change what a quantizer is given before all else."""
    return Hunk(
        _TOSA_QUANTIZER,
        _TRANSFORM,
        "".join(f"        {statement}\n" for statement in statements),
        before=True,
        other=_WITHOUT_GUARDS,
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
            PARTITIONER,
            "        ops_to_not_decompose_if_quant_op = {\n",
            "            torch.ops.aten.mish.default,\n",
        ),
        Hunk(
            PARTITIONER,
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
        *_buck("fmod", "quantizer_support", ":arm_quantizer_utils", "//caffe2:torch"),
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
            f"{ARM}/_passes/arm_pass_manager.py",
            "            return GraphModulePassManager(self.passes)(graph_module)"
            ".graph_module\n",
            _ANNOTATED,
            instead=True,
            other="            return self._transform_graph_module(graph_module)\n",
        ),
        Hunk(
            f"{ARM}/quantizer/arm_quantizer.py",
            "from executorch.backends.arm.quantizer.quantizer_support import (\n",
            "from executorch.backends.arm.quantizer.conv_transpose import PATTERNS\n",
            before=True,
        ),
        Hunk(
            f"{ARM}/quantizer/arm_quantizer.py",
            "logger = logging.getLogger(__name__)\n",
            "\nTOSA_QUANTIZER_SUPPORT_DICT.update(PATTERNS)\n",
        ),
        Hunk(
            f"{ARM}/quantizer/arm_quantizer_utils.py",
            "    PARAMETER_TARGETS = {\n",
            "        torch.ops.aten.conv_transpose1d.default,\n",
        ),
        Hunk(
            f"{ARM}/operator_support/convolution_support.py",
            "from executorch.backends.arm.tosa import TosaSpecification\n",
            "from executorch.backends.arm.operator_support.transposed_conv_check import "
            "(\n    needs_rewrite,\n)\n",
            before=True,
        ),
        Hunk(
            f"{ARM}/operator_support/convolution_support.py",
            "        transposed, output_padding, groups = self._get_conv_params(node)\n",
            "        if needs_rewrite(node, tosa_spec):\n            return True\n",
            before=True,
        ),
        Hunk(
            f"{ARM}/operators/op_tosa_transpose_conv2d.py",
            "        acc_type = output.dtype\n",
            "        if acc_type in (ts.DType.BF16, ts.DType.FP16):\n"
            "            acc_type = ts.DType.FP32\n",
        ),
        *_buck(
            "conv_transpose",
            "arm_quantizer",
            ":quantizer_support",
            "//caffe2:torch",
            "//executorch/backends/arm/_passes:passes",
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

FLOAT_ACCURACY = Change(
    title="Lower asinh, log1p, log_softmax and round right for every float",
    body="""\
log1p(-0.9) was -1.92 instead of -2.30: six terms of a Taylor series served for
all negative arguments. asinh(-5000) was minus infinity, as was log_softmax of
what is 104 below the largest (17 in fp16), and round(0.5) was 1.

A pass for each takes a formula that neither cancels nor underflows, in front of
the one that there was, which then sees quantized operators alone.
""",
    passes=tuple(
        Pass(module, name, f"{name}()", f"{before}()")
        for module, name, before in (
            ("decompose_odd_asinh_pass", "DecomposeOddAsinhPass", "DecomposeAsinhPass"),
            (
                "decompose_log1p_of_any_pass",
                "DecomposeLog1pOfAnyPass",
                "DecomposeLog1pPass",
            ),
            (
                "decompose_log_softmax_pass",
                "DecomposeLogSoftmaxPass",
                "DecomposeSoftmaxPass",
            ),
            (
                "decompose_round_to_even_pass",
                "DecomposeRoundToEvenPass",
                "DecomposeQuantNodesPass",
            ),
        )
    ),
    tests=("test_float_accuracy.py",),
)

NEG_SCALE = Change(
    title="Rescale the input of a neg that has another scale",
    body="""\
TOSA's NEGATE has two zero points and no scale. The quantizer gives neg the
qparams of its input; a cat of the same input gives that others afterwards, and
the numbers were off by the ratio of the scales. RescaleNegatePass inserts a
RESCALE there.
""",
    passes=(
        Pass(
            "rescale_negate_pass",
            "RescaleNegatePass",
            "RescaleNegatePass()",
            "InsertRescaleInt32Pass()",
        ),
    ),
    tests=("test_neg_scale.py",),
)

WHERE_NUMBER = Change(
    title="Annotate where with a number",
    body="""\
DecomposeWhereScalarOtherPass knows the edge op only, so that the quantizer sees
a where.ScalarOther that it does not annotate: where and its scalar_tensor were
float operators on the CPU of an integer target. DecomposeWhereNumberPass makes
the number a tensor before annotation; minus infinity is then limited there.
""",
    sources=("passes/decompose_where_number_pass.py",),
    hunks=(
        _quantizer_import(
            "from executorch.backends.arm._passes.decompose_where_number_pass import "
            "(\n    DecomposeWhereNumberPass,\n)\n"
        ),
        # Behind the marks of what is not annotated a where with a number is one.
        _before_annotation(
            "model = DecomposeWhereNumberPass(tfa_pass=True)(model).graph_module"
        ),
    ),
    tests=("test_where_number.py",),
)

STRIDED_NORM = Change(
    title="Keep the outputs of norms dense in the annotation pipeline",
    body="""\
layer_norm and group_norm give dense memory, whatever their input. What they
are decomposed to keeps the strides of the input, and a view behind it raised
"Cannot view a tensor with shape ...". KeepNormsDensePass makes such an input
dense first.
""",
    passes=(
        Pass(
            "keep_norms_dense_pass",
            "KeepNormsDensePass",
            "KeepNormsDensePass(tfa_pass=True)",
            "DecomposeGroupNormPass(tfa_pass=True)",
        ),
    ),
    tests=("test_strided_norm.py",),
)

ANNOTATION_SYMINT = Change(
    title="Quantize models with dynamic shapes",
    body="""\
Passes of the annotation pipeline that take shapes from tensor.data.shape left
a torch.SymInt in the arguments, and the prepared module raised "NameError:
s77" when it was called. MaterializeSymIntArgsPass, the last of the pipeline,
makes nodes of them. A size that is a node has no device, and validate no
longer takes it for one on another device.
""",
    passes=(
        Pass(
            "materialize_symint_args_pass",
            "MaterializeSymIntArgsPass",
            "MaterializeSymIntArgsPass(tfa_pass=True)",
            after="DeduplicateGetAttrPass(tfa_pass=True)",
        ),
    ),
    hunks=(
        Hunk(
            _TOSA_QUANTIZER,
            "from torch._ops import OpOverload\n",
            "from torch.fx.experimental.proxy_tensor import py_sym_types\n",
        ),
        Hunk(
            _TOSA_QUANTIZER,
            "                if meta_val is None:\n",
            "                if meta_val is None or isinstance(meta_val, py_sym_types):\n",
            instead=True,
        ),
    ),
    tests=("quantizer/test_dynamic_shapes.py",),
)

NO_GRAD_REGIONS = Change(
    title="Quantize what a model does under no_grad",
    body="""\
torch.export keeps such a region as a submodule. A quantizer annotates the
top-level graph alone, so that frozen encoders and codebooks stayed in float on
the CPU. InlineGradModePass puts them where they are called.
""",
    sources=("passes/inline_grad_mode_pass.py",),
    hunks=(
        _quantizer_import(
            "from executorch.backends.arm._passes.inline_grad_mode_pass import "
            "(\n    InlineGradModePass,\n)\n"
        ),
        _before_annotation(
            "model = InlineGradModePass(tfa_pass=True)(model).graph_module"
        ),
    ),
    tests=("quantizer/test_no_grad.py",),
)

SLICE_WRITES = Change(
    title="Quantize a tensor that is filled in slices",
    body="""\
"y = empty_like(x); y[..., :n] = a" was quantized to wrong numbers: the observer
scaled by what was in the memory, and since Q/DQ come between a tensor and its
slices, copy_ wrote a slice of a copy. FunctionalizeSliceWritesPass makes each
write a slice_scatter or select_scatter before annotation, and
FillUninitializedPass makes uninitialised memory a constant zero.

A tensor that another view shows after the write, or that is an input of the
model, is left as it is.
""",
    sources=(
        "passes/before_partition_pass.py",
        "passes/constant_evaluator.py",
        "passes/fill_uninitialized_pass.py",
        "passes/functionalize_slice_writes_pass.py",
        "passes/module_constants.py",
        "passes/program_constants.py",
    ),
    hunks=(
        _quantizer_import(
            "from executorch.backends.arm._passes.fill_uninitialized_pass import "
            "(\n    FillUninitializedPass,\n)\n"
            "from executorch.backends.arm._passes.functionalize_slice_writes_pass "
            "import (\n    FunctionalizeSliceWritesPass,\n)\n"
        ),
        _before_annotation(
            "model = FunctionalizeSliceWritesPass(tfa_pass=True)(model).graph_module",
            "model = FillUninitializedPass(lambda node: None)(model).graph_module",
        ),
    ),
    tests=("test_slice_writes.py",),
)

GUARDS_MODULE = Change(
    title="Keep the guards of a module out of the annotation pipeline",
    body="""\
ExportedProgram.module() starts with a call of a module that checks the inputs,
and an ExportPass raises "call_module is not supported". The guards are detached
while the pipeline runs; its result gets them back on its own placeholders, so
that they reach the converted module.
""",
    sources=("quantizer/guards.py",),
    hunks=(
        _quantizer_import(
            "from executorch.backends.arm.quantizer.guards import "
            "transform_without_guards\n"
        ),
        Hunk(_TOSA_QUANTIZER, _TRANSFORM, _WITHOUT_GUARDS, instead=True),
        *_buck("guards", "arm_quantizer", "//caffe2:torch"),
    ),
    tests=("quantizer/test_guards.py",),
)

CHANGES = {
    "mish": MISH,
    "conv-transpose1d": CONV_TRANSPOSE1D,
    "isnan-isinf-fmod": ISNAN_ISINF_FMOD,
    "roll-and-triangle": ROLL_AND_TRIANGLE,
    "float-to-int-cast": FLOAT_TO_INT_CAST,
    "float-accuracy": FLOAT_ACCURACY,
    "neg-scale": NEG_SCALE,
    "where-number": WHERE_NUMBER,
    "strided-norm": STRIDED_NORM,
    "annotation-symint": ANNOTATION_SYMINT,
    "no-grad-regions": NO_GRAD_REGIONS,
    "slice-writes": SLICE_WRITES,
    "guards-module": GUARDS_MODULE,
    **LOWERING_CHANGES,
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
    "delegation-share": "it is a change to devtools, outside the Arm backend",
    "error-messages": "half of it is a change to exir's pass manager, outside the "
    "Arm backend",
}


def why_not(fix: Fix) -> str:
    """Return why a fix is no change that can be written to executorch."""
    if fix.name in REFUSED:
        return REFUSED[fix.name]
    rewrites = hasattr(fix.load(), "rewrite_before_partition")
    return _BEFORE_PARTITION if rewrites else _WRAPPER
