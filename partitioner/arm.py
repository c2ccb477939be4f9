# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The proposal that the steps after it in ``TOSAPartitioner`` are to ask.

Those steps are methods and functions that are given a graph and nodes, and no
proposal; see :mod:`proposal` for what it answers.

"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Optional

from torch.fx.passes.infra.partitioner import Partition

from .capability import UnionFindPartitioner
from .proposal import Proposal

_current: ContextVar[list[Proposal]] = ContextVar("arm_ext_proposals")


@contextmanager
def proposal_scope() -> Iterator[None]:
    """Keep proposals made inside the block from outliving it."""
    token = _current.set([])
    try:
        yield
    finally:
        _current.reset(token)


def current_proposal() -> Optional[Proposal]:
    """Return the newest proposal of the innermost scope; None outside of one."""
    proposals = _current.get(None)
    return proposals[-1] if proposals else None


class RecordingPartitioner(UnionFindPartitioner):
    """A ``UnionFindPartitioner`` whose proposal is :func:`current_proposal`."""

    def propose_partitions(self) -> list[Partition]:
        partitions = super().propose_partitions()
        _current.get().append(Proposal(self.graph_module, partitions))
        return partitions
