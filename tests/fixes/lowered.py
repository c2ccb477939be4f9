# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Lower a model, run it, and put what came out beside what eager gives."""

from dataclasses import dataclass

import torch
import torchao.quantization.pt2e
from arm_ext import verify
from arm_ext.coverage import coverage, Coverage, reject_reasons
from arm_ext.targets import lower, quantize, Target
from executorch.backends.arm.quantizer import get_symmetric_quantization_config
from torch.export import export
from torch.utils._pytree import tree_leaves
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e


class Call(torch.nn.Module):
    """A module from a function of tensors, with the layers that it calls."""

    def __init__(self, function, *layers):
        super().__init__()
        self.function = function
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, *inputs):
        return self.function(*self.layers, *inputs)


@dataclass(frozen=True)
class Result:
    """Outputs of the lowered program, of eager, and what stayed on the CPU.

    ``wanted`` is what the lowered module gives in eager PyTorch: the quantized one
    where it was quantized. ``steps`` are the scales of the outputs, 1 where an
    output is not quantized.

    """

    covered: Coverage
    got: list[torch.Tensor]
    wanted: list[torch.Tensor]
    steps: list[float]

    @property
    def one_delegate(self) -> bool:
        return self.covered.delegates == 1 and self.covered.compute_ops == ()

    def error(self) -> float:
        """Return the largest difference, in steps where quantized."""
        outputs = zip(self.got, self.wanted, self.steps, strict=True)
        return max(
            (got.double() - wanted.double()).abs().max().item() / step
            for got, wanted, step in outputs
        )

    def reasons(self) -> str:
        return "\n".join(r for left in self.covered.left for r in left.reasons)


def lower_and_run(
    module: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    target: Target,
    quantization: str | None = None,
    **export_options,
) -> Result:
    """Lower, run on the TOSA reference model and make the ``.pte``."""
    if quantization == "qat":
        module = quantize_qat(module, inputs, target)
    elif quantization is not None:
        module = quantize(module, inputs, target, quantization)
    with reject_reasons():
        edge = lower(module, inputs, target, **export_options)
    result = Result(
        coverage(edge),
        tree_leaves(verify.run(edge, *inputs)),
        tree_leaves(module(*inputs)),
        steps_of(module, len(tree_leaves(module(*inputs)))),
    )
    for got, wanted in zip(result.got, result.wanted, strict=True):
        assert got.shape == wanted.shape and got.dtype == wanted.dtype
    assert edge.to_executorch().buffer
    return result


def payload(
    module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], target: Target
) -> bytes:
    """Lower to one delegate; return its TOSA flatbuffer."""
    edge = lower(module, inputs, target)
    (delegate,) = edge.exported_program().graph_module.children()
    return verify.tosa_of(delegate)


def passes(check, *arguments) -> bool:
    """Whether a check neither fails nor meets a lowering that throws."""
    try:
        check(*arguments)
    except Exception:
        return False
    return True


def quantize_qat(
    module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], target: Target
) -> torch.nn.Module:
    """Return the module quantized through ``prepare_qat_pt2e``."""
    exported = export(module.train(), inputs).module(check_guards=False)
    config = get_symmetric_quantization_config(is_per_channel=True, is_qat=True)
    quantizer = target.quantizer("int8")
    quantizer.set_global(config)
    prepared = prepare_qat_pt2e(exported, quantizer)
    prepared(*inputs)
    torchao.quantization.pt2e.move_exported_model_to_eval(prepared)
    return convert_pt2e(prepared)


def steps_of(module: torch.nn.Module, outputs: int) -> list[float]:
    """Return the scales with which the outputs of a module are dequantized."""
    if not isinstance(module, torch.fx.GraphModule):
        return [1.0] * outputs
    dequantize = torch.ops.quantized_decomposed.dequantize_per_tensor.default
    nodes = tree_leaves(module.graph.output_node().args)
    return [n.args[1] if n.target == dequantize else 1.0 for n in nodes]
