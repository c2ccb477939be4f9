# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Tell by a digest whether a backend makes the same of two programs."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import torch
from arm_ext.passes.program_constants import digest
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_map

# Where a node comes from and where it was; no pass reads these for what it computes.
_HISTORY = frozenset(
    (
        "delegation_tag",
        "from_node",
        "nn_module_stack",
        "original_aten",
        "source_fn_stack",
        "stack_trace",
        "torch_fn",
    )
)


def program_digest(program: ExportedProgram) -> bytes:
    """Return a digest of the graphs, the signature and the constants of a program.

    A meta value that prints its address makes two equal programs differ; two that
    differ have different digests.

    """
    found = sha256()

    def add(*parts: object) -> None:
        found.update(repr(parts).encode())

    for name, module in program.graph_module.named_modules():
        if isinstance(module, GraphModule):
            add(name)
            for node in module.graph.nodes:
                add(node.op, node.name, str(node.target), node.args, node.kwargs)
                add(_read_meta(node))
    add(program.graph_signature, program.range_constraints)
    for tensors in (program.state_dict, program.constants):
        for name, value in sorted(tensors.items()):
            add(name, _layout(value))
            if isinstance(value, torch.Tensor):
                found.update(digest(value.detach().contiguous()))
    return found.digest()


def _read_meta(node: Node) -> list[tuple[str, Any]]:
    read = ((k, v) for k, v in sorted(node.meta.items()) if k not in _HISTORY)
    return [(key, tree_map(_layout, value)) for key, value in read]


def _layout(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return type(value), value.dtype, tuple(value.shape), value.stride()
    return value
