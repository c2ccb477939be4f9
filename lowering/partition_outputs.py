# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Take the only output of a partition out of the list that a delegate returns."""

from __future__ import annotations

import operator

import torch
from torch.fx import GraphModule, Node


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
