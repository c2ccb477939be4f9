# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``partition()`` takes minutes on large graphs.

Gap: with 400 CPU ops on side branches ``partition()`` takes over two minutes
and grows with about the cube of the graph.

Stock: the proposal builds the set of everything downstream of each node and
tries all pairs of partitions; each partition then walks the whole graph to
find its own nodes and again to look for cycles.

Here: ``UnionFindPartitioner`` proposes the same partitions from one walk, and
:class:`arm_ext.partitioner.proposal.Proposal` answers the questions that follow from
each partition's own nodes. Which nodes are supported, tagged and de-tagged is
decided by the stock code.

Refused: nothing. A partition that has to be cut after de-tagging is cut into
the fewest pieces; stock cuts it into connected components, which are more and
may still depend on each other.

"""

import logging
import types

from arm_ext.fix import apply, Installed, Need
from arm_ext.fixes._hooks import wrap_tag_module
from arm_ext.partitioner.arm import (
    current_proposal,
    proposal_scope,
    RecordingPartitioner,
)
from arm_ext.patcher import Patcher
from executorch.exir.backend.utils import WhyNoPartitionReporter

_MODULE = "executorch.backends.arm.tosa.partitioner"


def needs(installed: Installed) -> Need:
    return apply()


def _scoped(wrapped, instance, args, kwargs):
    with proposal_scope():
        return wrapped(*args, **kwargs)


def _detag_own_nodes(wrapped, instance, args, kwargs):
    proposal = current_proposal()
    if proposal is None:
        return wrapped(*args, **kwargs)
    _, tag, *rest = args
    own = types.SimpleNamespace(nodes=proposal.tagged(tag))
    return wrapped(types.SimpleNamespace(graph=own), tag, *rest, **kwargs)


def _is_valid(wrapped, instance, args, kwargs):
    proposal = current_proposal()
    return wrapped(*args) if proposal is None else proposal.is_valid(*args)


def _fewest_pieces(wrapped, instance, args, kwargs):
    proposal = current_proposal()
    return wrapped(*args) if proposal is None else proposal.fewest_pieces(*args)


class _ReporterOnDemand(WhyNoPartitionReporter):
    """Lays out the table of rejected nodes only where somebody reads it.

    ``partition()`` formats the table for a log record that is dropped at the
    default log level; that takes as long as the support checks themselves.

    """

    def get_table_report(self) -> str:
        wanted = logging.getLogger(_MODULE).isEnabledFor(logging.INFO)
        return super().get_table_report() if wanted else ""


def install(patcher: Patcher) -> None:
    partitioner = f"{_MODULE}:TOSAPartitioner"
    wrap_tag_module(patcher, _scoped)
    patcher.wrap(
        f"{partitioner}._detag_boundary_nodes",
        _detag_own_nodes,
        parameters=("self", "module", "tag", "reporter", "detag_first_fp_node"),
    )
    patcher.set(
        f"{_MODULE}:CapabilityBasedPartitioner",
        RecordingPartitioner,
        everywhere=False,
    )
    patcher.set(
        f"{_MODULE}:WhyNoPartitionReporter", _ReporterOnDemand, everywhere=False
    )
    patcher.wrap(f"{_MODULE}:_validate_partition", _is_valid, parameters=("nodes",))
    patcher.wrap(
        f"{_MODULE}:_find_connected_components",
        _fewest_pieces,
        parameters=("nodes",),
    )
