# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast, Set, Type

import torch
from executorch.backends.arm._passes import ArmPass
from executorch.backends.arm._passes.arm_pass_utils import (
    create_node,
    get_constant_placeholder_kind,
    get_first_fake_tensor,
    get_param_tensor,
    is_persistent_buffer,
)
from executorch.backends.arm._passes.decompose_grouped_conv_pass import (
    DecomposeGroupedConvPass,
)
from executorch.backends.arm._passes.rewrite_conv_pass import RewriteConvPass
from executorch.backends.arm._passes.rewrite_pad import RewritePadPass
from executorch.backends.arm._passes.rewrite_slice import RewriteSlicePass
from executorch.backends.arm.tosa.specification import get_context_spec
from executorch.backends.transforms.utils import create_constant_placeholder
from executorch.exir import ExportedProgram
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from .transposed_conv import (
    as_plain,
    dilated,
    insertions,
    TransposedConv,
    ZeroInsertion,
)

_aten = exir_ops.edge.aten


def is_int16(node: Node) -> bool:
    """Return whether the activation of a folded convolution is 16 bit."""
    qparams = node.meta.get("input_qparams", {})
    return 0 in qparams and qparams[0].dtype is torch.int16


class RewriteTransposedConvPass(ArmPass):
    """Rewrite the transposed convolutions that TRANSPOSE_CONV2D cannot take as is.

    TOSA has the 2-D one only, without dilation. A 1-D one gets a unit axis and a
    dilated kernel its zeros, at compile time.

    Input graph::

        x [N, C, L], w [C, O, K] -> convolution(stride=s, dilation=d, transposed)

    Output graph::

        x -> view [N, C, 1, L] -> convolution(stride=[1, s], transposed) -> view
        w [C, O, 1, d * (K - 1) + 1] /

    Ethos-U55 takes it for int8 and strides up to 2 only, and nothing takes a
    padding beyond the kernel. Then zeros are put between the samples, and what is
    left to do is a plain convolution with the kernel reversed.

    Output graph::

        x [N, C, L] -> view [N, C, L, 1] -> pad [N, C, L, s] -> view [N, C, L * s]
          -> pad or slice -> convolution(stride=1, padding, dilation=d)
        w [O, C, K] /

    Views and zeros (a quantized pad fills with the zero point) are exact, and each
    output sums the same products as before: quantization parameters stay as they
    are. Each weight must be a constant of the program.

    """

    _passes_required_after: Set[Type[ExportPass]] = {
        DecomposeGroupedConvPass,
        RewriteConvPass,
        RewritePadPass,
        RewriteSlicePass,
    }

    def __init__(self, exported_program: ExportedProgram | None = None) -> None:
        super().__init__()
        # The pass manager sets it while the pass runs.
        self.exported_program = cast(ExportedProgram, exported_program)

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for node in list(graph_module.graph.nodes):
            conv = TransposedConv.of(node)
            if conv is None:
                continue
            u55 = get_context_spec().is_U55_subset
            plane = conv.with_unit_axis() if len(conv.kernel) == 1 else conv
            flat = plane.without_dilation()
            if plane.crops_whole_kernel or (u55 and not flat.fits_u55(is_int16(node))):
                self._insert_zeros(graph_module, node, conv)
            elif flat != conv:
                self._flatten(graph_module, node, conv, flat)
            else:
                continue
            modified = True
        if modified:
            graph_module.graph.eliminate_dead_code()
            graph_module = super().call(graph_module).graph_module
        return PassResult(graph_module, modified)

    # Rewrite as a 2-D transposed convolution

    def _flatten(
        self,
        graph_module: GraphModule,
        node: Node,
        conv: TransposedConv,
        flat: TransposedConv,
    ) -> None:
        x, weight = node.args[0], self._weight(node)
        values = dilated(weight, conv.dilation)
        one_dimensional = len(conv.kernel) == 1
        if one_dimensional:
            values = values.unsqueeze(2)
        new_weight = self._constant(node, values)
        graph = graph_module.graph
        with graph.inserting_before(node):
            if one_dimensional:
                x = self._call(graph, node, _aten.unsqueeze_copy.default, x, 2)
            node.args = (
                x,
                new_weight,
                node.args[2],
                list(flat.stride),
                list(flat.padding),
                list(flat.dilation),
                True,
                list(flat.output_padding),
                flat.groups,
            )
        if not one_dimensional:
            return
        shape = list(get_first_fake_tensor(node).shape)
        users = list(node.users)
        node.meta["val"] = node.meta["val"].unsqueeze(2)
        with graph.inserting_after(node):
            squeezed = self._call(graph, node, _aten.view_copy.default, node, shape)
        for user in users:
            user.replace_input_with(node, squeezed)

    # Rewrite as a plain convolution

    def _insert_zeros(
        self, graph_module: GraphModule, node: Node, conv: TransposedConv
    ) -> None:
        weight = self._constant(node, as_plain(self._weight(node), conv.groups))
        axes = insertions(conv)
        graph = graph_module.graph
        with graph.inserting_before(node):
            x = node.all_input_nodes[0]
            for axis, insertion in enumerate(axes, start=2):
                x = self._spread(graph, node, x, axis, insertion)
            x, padding = self._fit_ends(graph, node, x, axes)
        node.args = (
            x,
            weight,
            node.args[2],
            [1] * len(axes),
            padding,
            list(conv.dilation),
            False,
            [0] * len(axes),
            conv.groups,
        )
        qparams = node.meta.get("input_qparams", {})
        if 1 in qparams and qparams[1].per_channel:
            by_output = qparams[1]._replace(axis=0)
            node.meta["input_qparams"] = {**qparams, 1: by_output}

    def _spread(
        self, graph: Any, node: Node, x: Node, axis: int, insertion: ZeroInsertion
    ) -> Node:
        """Put the zeros between the samples of one axis."""
        zeros = insertion.lead + insertion.trail
        if not zeros:
            return x
        shape = list(get_first_fake_tensor(x).shape)
        behind = shape[axis + 1 :]
        column = [*shape[: axis + 1], 1, *behind]
        x = self._call(graph, node, _aten.view_copy.default, x, column)
        pads = [0, 0] * len(behind) + [insertion.lead, insertion.trail]
        x = self._pad(graph, node, x, pads)
        shape[axis] *= zeros + 1
        return self._call(graph, node, _aten.view_copy.default, x, shape)

    def _fit_ends(
        self, graph: Any, node: Node, x: Node, axes: Sequence[ZeroInsertion]
    ) -> tuple[Node, list[int]]:
        """Crop or pad the ends; return also what the convolution pads alike."""
        padding: list[int] = []
        pads: list[int] = []
        for axis, insertion in enumerate(axes, start=2):
            left, right = insertion.left, insertion.right
            size = get_first_fake_tensor(x).shape[axis]
            if left < 0 or right < 0:
                start, end = max(-left, 0), size - max(-right, 0)
                crop = _aten.slice_copy.Tensor
                x = self._call(graph, node, crop, x, axis, start, end)
            alike = max(min(left, right), 0)
            padding.append(alike)
            pads = [max(left, 0) - alike, max(right, 0) - alike, *pads]
        return (self._pad(graph, node, x, pads) if any(pads) else x), padding

    def _pad(self, graph: Any, node: Node, x: Node, pads: list[int]) -> Node:
        padded = self._call(graph, node, _aten.constant_pad_nd.default, x, pads, 0.0)
        qparams = node.meta.get("input_qparams", {})
        if 0 in qparams:
            # The pad is filled with what zero is quantized to.
            padded.meta["input_qparams"] = {0: qparams[0]}
            padded.meta["output_qparams"] = {0: qparams[0]}
        return padded

    # Helpers

    def _weight(self, node: Node) -> torch.Tensor:
        weight = get_param_tensor(self.exported_program, cast(Node, node.args[1]))
        if weight is None:
            raise RuntimeError(f"The weight of {node.name} is not a constant")
        return weight.detach()

    def _constant(self, node: Node, values: torch.Tensor) -> Node:
        source = cast(Node, node.args[1])
        with node.graph.inserting_after(source):
            return create_constant_placeholder(
                self.exported_program,
                graph=node.graph,
                name=f"{node.name}_rewritten_weight",
                kind=get_constant_placeholder_kind(self.exported_program, source),
                data=values.contiguous(),
                persistent_buffer=is_persistent_buffer(self.exported_program, source),
            )

    def _call(self, graph: Any, node: Node, target: Any, *args: Any) -> Node:
        """Add a node that stands for a part of ``node``."""
        call = create_node(graph, target, args, from_node=node)
        values = (get_first_fake_tensor(args[0]), *args[1:])
        call.meta["val"] = target(*values)
        return call
