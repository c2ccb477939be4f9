# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What the Arm backend accepts but cannot lower.

Support lists name ops, not dtypes, so some nodes are tagged for delegation and
then stop the whole lowering with an exception. :class:`LowerableCheck` is one
more negative check for the partitioner's chain: it leaves them on the CPU, and
says why through the reject report.

"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from arm_ext.partitioner.reasoned_check import ReasonedCheck
from executorch.backends.arm._passes.arm_pass_utils import get_first_fake_tensor
from executorch.backends.arm.constants import DQ_OPS, Q_OPS
from executorch.backends.arm.tosa.specification import TosaSpecification
from executorch.exir.backend.utils import WhyNoPartitionReporter
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase

_aten = exir_ops.edge.aten

_SMALL_INTS = (torch.int8, torch.int16)
_FLOATS = (torch.float16, torch.bfloat16, torch.float32)


def _dtype(node: Node) -> torch.dtype:
    return get_first_fake_tensor(node).dtype


def _is_output(node: Node) -> bool:
    return bool(node.users) and all(user.op == "output" for user in node.users)


def _is_static(value: Any) -> bool:
    return isinstance(value, int)


def _argument(node: Node, position: int, name: str, default: Any) -> Any:
    if len(node.args) > position:
        return node.args[position]
    return node.kwargs.get(name, default)


class LowerableCheck(ReasonedCheck):
    """Reject nodes that stop the lowering after they were accepted.

    Each rule looks at one op and returns the reason, or None where the node
    can be lowered.

    Args:
        program (ExportedProgram): The program that holds the nodes.
        tosa_spec (TosaSpecification): The specification to lower for.
        reporter (WhyNoPartitionReporter): Takes the reasons.
        accepts (Callable): Whether the rest of the chain accepts a node; a
            weight computed by accepted ops on constants is folded.

    """

    def __init__(
        self,
        program: ExportedProgram,
        tosa_spec: TosaSpecification,
        reporter: WhyNoPartitionReporter,
        accepts: Callable[[Node], bool],
    ) -> None:
        super().__init__(reporter)
        signature = program.graph_signature
        self._run_time_inputs = {
            *signature.user_inputs,
            *(
                name
                for name, buffer in signature.inputs_to_buffers.items()
                if buffer in signature.buffers_to_mutate.values()
            ),
        }
        self._tosa_spec = tosa_spec
        self._accepts = accepts

    def why_not(self, node: Node) -> str | None:
        """Return the first reason that a rule has."""
        for rule in (LowerableCheck.uint8, *_RULES.get(node.target, ())):
            reason = rule(self, node)
            if reason is not None:
                return reason
        return None

    def uint8(self, node: Node) -> str | None:
        """A uint8 tensor inside a partition has all of the partition rejected.

        That is too late for the other nodes: they were kept whole because they
        are accepted. Rejecting the uint8 node alone leaves them delegated.

        """
        if node.op != "call_function" or node.target in (*Q_OPS, *DQ_OPS):
            return None
        if node.target is operator.getitem and _is_output(node):
            return None
        value = node.meta.get("val")
        first = value[0] if isinstance(value, (list, tuple)) and value else value
        if isinstance(first, torch.Tensor) and first.dtype is torch.uint8:
            return "uint8 exists in TOSA only where quantized data enters or leaves"
        return None

    def pad(self, node: Node) -> str | None:
        """Unquantized small ints have no qparams; only zeros can be cropped off."""
        if _dtype(node) in _SMALL_INTS:
            return f"an unquantized {_dtype(node)} pad cannot be lowered to TOSA PAD"
        mode = _argument(node, 2, "mode", "constant")
        if node.target == _aten.constant_pad_nd.default or mode == "constant":
            return None
        x, pads = cast(tuple[Node, list[Any]], node.args[:2])
        if not all(_is_static(size) and size >= 0 for size in pads):
            return f"a negative or dynamic pad in mode {mode!r} cannot be lowered"
        padded = get_first_fake_tensor(x).shape[-(len(pads) // 2) :]
        if len(pads) and not all(_is_static(size) for size in padded):
            return f"mode {mode!r} pads a dynamic dimension"
        return None

    def float_only(self, node: Node) -> str | None:
        """The op is lowered to float arithmetic only, or to quantized one."""
        for argument in node.all_input_nodes:
            if _dtype(argument) not in _FLOATS:
                return (
                    f"{argument.name} is {_dtype(argument)}; the op is lowered for "
                    "floating-point and quantized inputs only"
                )
        return None

    def constant_weight(self, node: Node) -> str | None:
        """TOSA convolutions, which linear becomes, take their weight as data."""
        weight = cast(Node, node.args[1])
        if self._is_constant(weight):
            return None
        return f"the weight {weight.name} is computed at run time"

    def _is_constant(self, node: Node) -> bool:
        """Walk back to the sources: all constants, all ops between foldable."""
        to_visit, seen = [node], {node}
        while to_visit:
            source = to_visit.pop()
            if source.op == "placeholder" and source.name in self._run_time_inputs:
                return False
            if source.op == "call_function" and not self._is_folded(source):
                return False
            to_visit += [n for n in source.all_input_nodes if n not in seen]
            seen.update(source.all_input_nodes)
        return True

    def _is_folded(self, node: Node) -> bool:
        return node.target in DQ_OPS or self._accepts(node)

    def integer_dtype(self, node: Node) -> str | None:
        """TOSA has most arithmetic for small ints only as part of quantization."""
        with_int, without_int = _NO_INTEGER_FORM[node.target]
        dtypes = with_int if self._tosa_spec.support_integer() else without_int
        for argument in node.all_input_nodes:
            if _dtype(argument) in dtypes:
                return (
                    f"{argument.name} is {_dtype(argument)}; {self._tosa_spec} has no "
                    "unquantized form of the op for this dtype"
                )
        return None


_I8, _I16, _I32 = torch.int8, torch.int16, torch.int32
_BOOL, _U8 = torch.bool, torch.uint8

# Input dtypes with which an op stops the lowering: where the spec has the INT
# profile, and where it is FP only. An FP-only comparison casts small ints.
_NO_INTEGER_FORM: Mapping[Any, tuple[tuple, tuple]] = {
    **dict.fromkeys(
        (_aten.add.Tensor, _aten.sub.Tensor), ((_I8, _I16, _BOOL), (_I8, _I16, _BOOL))
    ),
    _aten.mul.Tensor: ((_I8, _I16), (_I8, _I16)),
    **dict.fromkeys(
        (_aten.maximum.default, _aten.minimum.default),
        ((_I8, _I16, _BOOL), (_I8, _I16, _BOOL, _I32)),
    ),
    **dict.fromkeys(
        (_aten.clamp.default, _aten.hardtanh.default), ((), (_I8, _I16, _I32))
    ),
    _aten.clamp.Tensor: ((_I8, _I16), (_I8, _I16, _I32)),
    _aten.relu.default: ((_I8, _I16, _I32), (_I8, _I16, _I32)),
    _aten.abs.default: ((_I8, _I16), (_I8, _I16, _I32)),
    _aten.neg.default: ((_I8,), (_I8, _I16, _I32)),
    **dict.fromkeys(
        (
            getattr(getattr(_aten, name), overload)
            for name in ("eq", "ge", "gt", "le", "lt", "ne")
            for overload in ("Tensor", "Scalar")
        ),
        ((_I8, _I16, _BOOL, _U8), ()),
    ),
}

_Rule = Callable[[LowerableCheck, Node], "str | None"]

_RULES: Mapping[Any, tuple[_Rule, ...]] = {
    _aten.pad.default: (LowerableCheck.pad,),
    _aten.constant_pad_nd.default: (LowerableCheck.pad,),
    **dict.fromkeys(
        (_aten.logit.default, _aten.mm.default, _aten.bmm.default, _aten.addmm.default),
        (LowerableCheck.float_only,),
    ),
    _aten.linear.default: (LowerableCheck.float_only, LowerableCheck.constant_weight),
    _aten.convolution.default: (LowerableCheck.constant_weight,),
    **dict.fromkeys(_NO_INTEGER_FORM, (LowerableCheck.integer_dtype,)),
}


class GridSamplerSupport(OperatorSupportBase):
    """Accept ``grid_sampler_2d`` where VGF's custom op has its dtype.

    Args:
        tosa_spec (TosaSpecification): The specification to lower for.
        reporter (WhyNoPartitionReporter): Takes the reason of a rejected node.

    """

    def __init__(
        self, tosa_spec: TosaSpecification, reporter: WhyNoPartitionReporter
    ) -> None:
        self._tosa_spec = tosa_spec
        self._reporter = reporter

    def is_node_supported(
        self, submodules: Mapping[str, torch.nn.Module], node: Node
    ) -> bool:
        """Return True for a grid sampler on float tensors that the spec has."""
        del submodules
        if node.target != _aten.grid_sampler_2d.default:
            return False
        dtypes = {_dtype(argument) for argument in node.all_input_nodes}
        if dtypes <= self._dtypes():
            return True
        names = ", ".join(sorted(str(dtype) for dtype in dtypes))
        self._reporter.report_reject(
            node, f"{self._tosa_spec} has no grid sampler on {names}"
        )
        return False

    def _dtypes(self) -> set[torch.dtype]:
        if self._tosa_spec.support_extension("bf16"):
            return set(_FLOATS)
        return {torch.float16, torch.float32}
