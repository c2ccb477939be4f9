# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""An int64 constant index stays on the CPU or throws.

The gap
    TOSA indexes with int32, PyTorch with int64. An index that is a constant
    could be narrowed at compile time, but the support checks of ``gather``,
    ``embedding`` and ``index_select`` demand int32, the one of ``index.Tensor``
    takes no ``None`` and accepts an int64 constant that
    ``DecomposeIndexTensorToGatherPass`` then stops at. Negative values reach TOSA
    as they are and select anything.
What is done
    Just before a program is partitioned for an Arm backend,
    ``NarrowConstantIndexPass`` runs on a copy of it: there the edge dialect has
    the constants' values, in ``to_edge_transform_and_lower`` and in
    ``to_edge`` + ``to_backend`` alike. Each rewritten node is shown to the
    partitioner's own support chain and put back if that declines.
    ``ConstantIndexCheck`` in front of the chain keeps on the CPU what was refused.
    Beside it, ``FlattenIndexPutIndicesPass`` in the backend's pipeline gives
    ``index_put`` the rank-1 indices that its lowering counts on, and
    ``RewriteConstantScatterPass`` shows the quantizer an ``index_put`` where it
    would leave a ``scatter`` unquantized.
What is refused
    Values out of range or beyond int32, empty indices, buffers that the program
    writes, places written more than once, a source of symbolic size, and an int64
    index inside a control-flow branch: the op stays on the CPU, with the reason
    in the partitioner's report. So does a mask that is known only at run time.

"""

from __future__ import annotations

import torch
from arm_ext import fix
from arm_ext.fixes._before_partition import rewrite_before_partition, run_pass, WhyNot
from arm_ext.fixes._passes import insert_passes, run_before_annotation
from arm_ext.fixes._support import check_first
from arm_ext.partitioner.constant_index_check import ConstantIndexCheck
from arm_ext.passes.flatten_index_put_indices_pass import FlattenIndexPutIndicesPass
from arm_ext.passes.index_ops import match
from arm_ext.passes.narrow_constant_index_pass import NarrowConstantIndexPass
from arm_ext.passes.program_constants import ProgramConstants
from arm_ext.passes.rewrite_constant_scatter_pass import RewriteConstantScatterPass
from arm_ext.patcher import Patcher
from executorch.backends.arm._passes import (
    ArmPassManager,
    NormalizeIndexPutNoneIndicesPass,
)
from executorch.backends.arm.operator_support.index_select_support import (
    IndexSelectSupported,
)
from executorch.backends.arm.tosa import TosaSpecification
from executorch.exir.backend.utils import WhyNoPartitionReporter
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import ExportedProgram
from torch.fx import Graph, Node


def _matches(node: Node) -> bool:
    return match(node) is not None


def _narrow(program: ExportedProgram, why_not: WhyNot) -> bool:
    constants = ProgramConstants(program, "constant_index")
    return run_pass(NarrowConstantIndexPass(why_not, constants), program)


def _make_check(
    tosa_spec: TosaSpecification,
    exported_program: ExportedProgram,
    reporter: WhyNoPartitionReporter,
) -> ConstantIndexCheck:
    return ConstantIndexCheck(exported_program, reporter)


def _insert_flatten(manager: ArmPassManager, program: ExportedProgram) -> None:
    manager.insert_passes_before(
        NormalizeIndexPutNoneIndicesPass, [FlattenIndexPutIndicesPass()]
    )


def _takes_int64_constant() -> bool:
    """Whether the stock check of ``index_select`` takes an int64 constant."""
    graph = Graph()
    source, index = graph.placeholder("x"), graph.placeholder("c_index")
    source.meta["val"] = torch.empty(4, 2, device="meta")
    index.meta["val"] = torch.empty(3, dtype=torch.int64, device="meta")
    node = graph.call_function(
        exir_ops.edge.aten.index_select.default, (source, 0, index)
    )
    spec = TosaSpecification.create_from_string("TOSA-1.0+FP")
    check = IndexSelectSupported(spec, WhyNoPartitionReporter())
    return check.is_node_supported({}, node)


def needs(installed: fix.Installed) -> fix.Need:
    if _takes_int64_constant():
        return fix.already_fixed("index_select takes an int64 index")
    return fix.apply()


def install(patcher: Patcher) -> None:
    insert_passes(patcher, _insert_flatten)
    run_before_annotation(patcher, lambda: RewriteConstantScatterPass(tfa_pass=True))
    rewrite_before_partition(patcher, _matches, _narrow)
    check_first(patcher, _make_check)
