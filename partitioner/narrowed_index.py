# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The int64 indices that a delegate may hold: those that nothing sees as int64."""

from __future__ import annotations

from collections.abc import Callable

import torch
from arm_ext.partitioner.reasoned_check import ReasonedCheck
from arm_ext.passes.index_sources import (
    index_source,
    is_call,
    is_cast,
    is_narrowed,
    is_widening,
    SELECTION_OPS,
)
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch.fx import Node


def is_int32_inside(node: Node) -> bool:
    """Whether the int64 that ``node`` has as output or input is an int32 in TOSA.

    So it is for an op that computes an index, the ``getitem`` that picks the index
    and the cast to int32 behind, if nothing but such casts reads the index.

    """
    if is_call(node, SELECTION_OPS):
        indices = [user for user in node.users if index_source(user) and user.users]
        return all(is_narrowed(index) for index in indices)
    index = _index_of(node)
    return index is not None and is_narrowed(index)


class NarrowedIndexCheck(ReasonedCheck):
    """Reject the int64 of an index whose op is not taken.

    Args:
        reporter (WhyNoPartitionReporter): Takes the reason of a rejected node.
        accepts (Callable): Whether the partitioner takes the op.

    """

    def __init__(
        self, reporter: WhyNoPartitionReporter, accepts: Callable[[Node], bool]
    ) -> None:
        super().__init__(reporter)
        self._accepts = accepts

    def why_not(self, node: Node) -> str | None:
        index = _index_of(node)
        source = None if index is None else index_source(index)
        if source in (None, node) or self._accepts(source):
            return None
        return f"{source.name}, which computes the index, stays on the CPU"


class WideningCheck(ReasonedCheck):
    """Reject a cast from int32 to int64, and say what it is there for."""

    def why_not(self, node: Node) -> str | None:
        if not is_widening(node):
            return None
        return "TOSA has no int64: who needs one gets it from this cast"


def _index_of(node: Node) -> Node | None:
    """Return the index that ``node`` is, or casts to int32."""
    index = node.all_input_nodes[0] if is_cast(node, torch.int32) else node
    return None if index_source(index) is None else index
