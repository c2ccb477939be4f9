# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

from __future__ import annotations

from typing import Any, cast, Set, Type

import torch
from executorch.backends.arm._passes import ArmPass
from executorch.backends.arm._passes.arm_pass_utils import (
    create_node,
    get_first_fake_tensor,
)
from executorch.exir.pass_base import ExportPass
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult
from torchao.quantization.pt2e.fake_quantize import FakeQuantizeBase
from torchao.quantization.pt2e.quantizer import QuantizationSpec
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from .transposed_conv import block_diagonal

_aten = torch.ops.aten
CONV_TRANSPOSE1D = _aten.conv_transpose1d.default
CONV_TRANSPOSE2D = _aten.conv_transpose2d.input

# What conv_transposeNd takes behind the bias by default: stride, padding,
# output_padding, groups and dilation.
_DEFAULTS = (1, 0, 0, 1, 1)
_GROUPS = 6

# What the quantizer fuses with a convolution in front of it.
_FUSED = (
    _aten.batch_norm.default,
    _aten.relu.default,
    _aten.relu_.default,
    _aten.hardtanh.default,
    _aten.hardtanh_.default,
)


def geometry(node: Node) -> list[Any]:
    """Return stride, padding, output_padding, groups and dilation of a node."""
    given = list(node.args[3:])
    return given + list(_DEFAULTS[len(given) :])


class NormalizeConvTransposePass(ArmPass):
    """Show the quantizer a transposed convolution that it knows: 2-D, one group.

    The quantizer annotates ``conv_transpose2d``, with one weight scale an output
    channel, and fuses it with a batch norm and a ReLU behind it. The view that
    takes the unit axis away goes behind those, for it to see them.

    Input graph::

        x [N, C, L] -> conv_transpose1d(w, b, [s]) -> batch_norm -> relu

    Output graph::

        x [N, C, L] -> unsqueeze [N, C, 1, L]
          -> conv_transpose2d(w', b, [1, s]) -> batch_norm -> relu -> squeeze

    Groups become one by a block-diagonal weight: a scale an output channel does
    not fit the weight of several, ``[C, O / groups, K]``. So ``groups`` times the
    products, most with zero, and one convolution. A grouped ``conv_transpose2d``
    is rewritten only where its weight is to be quantized per channel.

    An input without batch axis, ``[C, L]``, gets one too.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for node in list(graph_module.graph.nodes):
            if node.op != "call_function" or not self.allowed_to_transform(node.meta):
                continue
            if node.target == CONV_TRANSPOSE1D and has_constant_weight(node):
                self._to_two_dimensions(graph_module, node)
            elif node.target == CONV_TRANSPOSE2D and _is_grouped_per_channel(node):
                self._to_one_group(graph_module, node)
            else:
                continue
            modified = True
        if modified:
            graph_module.graph.eliminate_dead_code()
            graph_module.recompile()
            graph_module = super().call(graph_module).graph_module
        return PassResult(graph_module, modified)

    def _to_two_dimensions(self, graph_module: GraphModule, node: Node) -> None:
        x, weight = cast(tuple[Node, Node], node.args[:2])
        bias = node.args[2] if len(node.args) > 2 else None
        stride, padding, extra, groups, dilation = geometry(node)
        values = block_diagonal(_tensor(weight).detach(), groups).unsqueeze(2)
        # The axes that squeeze takes away again, the last one first.
        added = [2, 0] if get_first_fake_tensor(x).dim() == 2 else [2]
        graph = graph_module.graph
        with graph.inserting_before(node):
            for axis in reversed(added):
                x = _call(graph, node, _aten.unsqueeze.default, x, axis)
            plane = _call(
                graph,
                node,
                CONV_TRANSPOSE2D,
                x,
                _parameter(graph_module, weight, values),
                bias,
                [1, _only(stride)],
                [0, _only(padding)],
                [0, _only(extra)],
                1,
                [1, _only(dilation)],
            )
        node.replace_all_uses_with(plane)
        graph.erase_node(node)
        # Without a batch axis the channels of a batch norm are other ones.
        last = _last_fused(plane, _FUSED if added == [2] else _FUSED[1:])
        users, squeezed = list(last.users), last
        for axis in added:
            with graph.inserting_after(squeezed):
                squeezed = _call(graph, plane, _aten.squeeze.dim, squeezed, axis)
        for user in users:
            user.replace_input_with(last, squeezed)

    def _to_one_group(self, graph_module: GraphModule, node: Node) -> None:
        weight, groups = cast(Node, node.args[1]), cast(int, node.args[_GROUPS])
        values = block_diagonal(_tensor(weight).detach(), groups)
        with graph_module.graph.inserting_before(node):
            node.update_arg(1, _parameter(graph_module, weight, values))
        node.update_arg(_GROUPS, 1)


def has_constant_weight(node: Node) -> bool:
    """Return whether weight and bias are attributes of the module."""
    given = cast(tuple[Node | None, ...], node.args[1:3])
    return all(arg is None or arg.op == "get_attr" for arg in given)


def _is_grouped_per_channel(node: Node) -> bool:
    """Return whether the annotation asks for a weight scale a channel."""
    if geometry(node)[3] == 1 or not has_constant_weight(node):
        return False
    annotation: Any = node.meta.get(Q_ANNOTATION_KEY)
    spec = annotation and annotation.input_qspec_map.get(node.args[1])
    per_channel = getattr(spec, "qscheme", None) is torch.per_channel_symmetric
    return per_channel and not is_trained(spec)


def is_trained(spec: QuantizationSpec) -> bool:
    """Return whether the spec is one of quantization-aware training.

    Training would move the zeros of a block-diagonal weight.

    """
    make = spec.observer_or_fake_quant_ctr
    make = getattr(make, "p", make)  # torchao's PartialWrapper
    made = getattr(make, "func", make)
    return isinstance(made, type) and issubclass(made, FakeQuantizeBase)


def _only(values: Any) -> int:
    return values if isinstance(values, int) else values[0]


def _tensor(attribute: Node) -> torch.Tensor:
    owner, _, name = str(attribute.target).rpartition(".")
    graph_module = cast(GraphModule, attribute.graph.owning_module)
    return getattr(graph_module.get_submodule(owner), name)


def _parameter(graph_module: GraphModule, source: Node, values: torch.Tensor) -> Node:
    """Return a node for a parameter next to ``source`` with other values."""
    name = f"{source.target}_2d".replace(".", "_")
    while hasattr(graph_module, name):
        name += "_"
    trained = _tensor(source).requires_grad
    graph_module.register_parameter(
        name, torch.nn.Parameter(values.contiguous(), requires_grad=trained)
    )
    node = graph_module.graph.get_attr(name)
    node.meta = dict(source.meta)
    fake = source.meta["val"]
    node.meta["val"] = fake.new_empty(values.shape)
    return node


def _last_fused(conv: Node, targets: tuple) -> Node:
    """Return the last node of what the quantizer sees as one with ``conv``."""
    last = conv
    while len(last.users) == 1:
        (user,) = last.users
        if user.target not in targets or user.args[0] is not last:
            break
        last = user
        # At most one of each: a batch norm, then an activation.
        targets = targets[1:] if user.target is _FUSED[0] else ()
    return last


def _call(graph: Any, node: Node, target: Any, *args: Any) -> Node:
    """Add a node that stands for a part of ``node``."""
    call = create_node(graph, target, args, from_node=node)
    call.meta.pop(Q_ANNOTATION_KEY, None)
    return call
