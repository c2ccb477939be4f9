# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A stock reason for which a node is rejected, in words that a user can act on.

Stock says that a node, or "one or more inputs", is not quantized. Which input, what
makes it and why the quantizer left the node is in the graph.

"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from arm_ext.partitioner.reject_report import without_schema
from arm_ext.partitioner.source import source_of
from executorch.backends.arm.constants import DQ_OPS, Q_OPS
from executorch.backends.arm.quantizer.arm_quantizer_utils import SharedQspecQuantizer
from executorch.backends.arm.quantizer.quantizer_support import (
    TOSA_QUANTIZER_SUPPORT_DICT,
)
from torch.fx import Node


def in_words(node: Node, reason: str) -> str:
    """Return a reason for which a partitioner rejects a node, with what it leaves out.

    Args:
        node (Node): A node of an edge program that is about to be partitioned.
        reason (str): The partitioner's.

    """
    reason = without_schema(reason)
    explain = _EXPLAINED.get(reason)
    more = "; ".join(explain(node)) if explain else ""
    return f"{reason.rstrip('.')}: {more}." if more else reason


# Why a node was not annotated


def _why_not_marked(node: Node) -> Iterator[str]:
    yield _why_not_annotated(node)
    yield from _inputs_not_quantized(node)
    yield from _outputs_not_quantized(node)
    yield from _scales_of_inputs(node)


def _why_not_annotated(node: Node) -> str:
    reads, makes = _dtypes(*node.all_input_nodes), _dtypes(node)
    if torch.float32 not in (*reads, *makes):
        return f"only float32 is quantized, and it is {_names(reads or makes)}"
    if reads and torch.float32 not in reads:
        return f"it makes float32 of {_names(reads)}, which has no scale"
    exported, here = _exported_op(node), _aten_op(node)
    if exported in _known():
        return (
            f"the Arm quantizer knows {exported} and left it: it has no configuration "
            "for it, or what is beside it is not quantized"
        )
    if here != exported and here in _known():
        return (
            f"it is {exported} in the model, which the Arm quantizer does not know; "
            f"it knows {here}"
        )
    return f"the Arm quantizer does not know {exported}"


def _exported_op(node: Node) -> str:
    """Return the op that a node is in the exported program."""
    sources = node.meta.get("from_node")
    if not sources:
        return _aten_op(node)
    source = sources[-1]
    while source.from_node:
        source = source.from_node[-1]
    return str(source.target)


def _aten_op(node: Node) -> str:
    return getattr(node.target, "__name__", str(node.target))


def _known() -> set[str]:
    """Return the ops that the quantizer annotates, alone or as their neighbours."""
    alone = (op for (op, *more) in TOSA_QUANTIZER_SUPPORT_DICT if not more)
    return set(map(str, (*alone, *SharedQspecQuantizer.SHARED_QSPEC_OPS_DEFAULT)))


# What is beside it


def _inputs_not_quantized(node: Node) -> Iterator[str]:
    for source in node.all_input_nodes:
        if source.target not in DQ_OPS and _has_float(source):
            yield f"its input {_described(source)} is not quantized"


def _outputs_not_quantized(node: Node) -> Iterator[str]:
    for user in node.users if _has_float(node) else ():
        if user.op == "output":
            yield "the model returns it as it is"
        elif user.target not in Q_OPS:
            yield f"{_described(user)} reads it without a quantize between them"


def _scales_of_inputs(node: Node) -> Iterator[str]:
    sources = [s for s in node.all_input_nodes if s.target in DQ_OPS]
    scales = {s.args[1]: None for s in sources if isinstance(s.args[1], float)}
    if len(scales) > 1:
        yield f"its inputs have the scales {', '.join(f'{s:.3g}' for s in scales)}"


def _described(node: Node) -> str:
    """Return name, op, dtype and line of a node."""
    what = [_aten_op(node)] if node.op == "call_function" else []
    what += [_names(_dtypes(node))]
    source = source_of(node)
    where = f" at {source.file}:{source.line}" if source else ""
    return f"{node.name} ({', '.join(what)}{where})"


def _has_float(node: Node) -> bool:
    return any(dtype.is_floating_point for dtype in _dtypes(node))


def _dtypes(*nodes: Node) -> dict[torch.dtype, None]:
    values = torch.utils._pytree.tree_leaves([n.meta.get("val") for n in nodes])
    return dict.fromkeys(v.dtype for v in values if isinstance(v, torch.Tensor))


def _names(dtypes: dict[torch.dtype, None]) -> str:
    return " and ".join(str(d).removeprefix("torch.") for d in dtypes) or "no tensor"


_EXPLAINED = {
    "Node was not marked as quantized in the Arm backend.": _why_not_marked,
    "One or more inputs were not quantized.": _inputs_not_quantized,
    "One or more outputs were not quantized.": _outputs_not_quantized,
}
