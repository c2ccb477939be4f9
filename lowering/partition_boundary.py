# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What a partition, cut out of a program, takes in and hands out."""

from __future__ import annotations

import operator

import torch
from torch._subclasses import FakeTensor
from torch.fx import GraphModule, Node


def forget_constant_inputs(partition: GraphModule) -> None:
    """Take the values off the inputs of a partition.

    A fake tensor can carry the value of a constant. What reads it is then computed
    by PyTorch when the partition is traced, which TOSA ops cannot be. Where the
    constant is an input, its value does not belong to the partition anyway.

    """
    for node in partition.graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" else None
        if isinstance(value, FakeTensor) and value.constant is not None:
            with value.fake_mode:
                node.meta["val"] = torch.empty_strided(
                    value.shape, value.stride(), dtype=value.dtype, device=value.device
                )


def unwrap_symbol(partition: GraphModule, call: Node) -> None:
    """Insert the ``getitem`` that a partition with a symbol as only output lacks.

    ExecuTorch inserts one where the only output is a tensor. Without it the users of
    a size would be given the delegate's list.

    Args:
        partition (GraphModule): The graph cut out of a program.
        call (Node): The ``call_module`` node in its place; its users are changed.

    """
    outputs = partition.graph.output_node().args[0]
    if len(outputs) != 1 or not isinstance(outputs[0], Node):
        return
    value = outputs[0].meta.get("val")
    if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return
    graph = call.graph
    with graph.inserting_after(call):
        item = graph.call_function(operator.getitem, (call, 0))
    item.meta["val"] = value
    call.replace_all_uses_with(item, delete_user_cb=lambda user: user is not item)
