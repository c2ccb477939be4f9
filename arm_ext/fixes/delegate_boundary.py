# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A delegate declares float32 where its TOSA graph has int8 codes.

The gap
    A value that is quantized is int8 in the TOSA graph as soon as it is made. Where
    its quantize is in the next partition (FP+INT), or was taken off that partition's
    start (integer-only), the first one declares the float value at its boundary. The
    program lowers without a word, and the runtime reads codes as floats (public issue
    19364 and pull request 22966 of pytorch/executorch).
    A delegate also declares an input of which it reads the shape alone, in
    ``full_like`` or as the destination of ``copy``. Its TOSA graph has no such input,
    and the runtime, which counts, takes every later argument for its neighbour and
    writes an output over an input.
What is done
    The quantize joins the partition that makes its value. A partition takes in only
    what it reads.
What is refused
    Every delegate's declared inputs and outputs are compared with its TOSA graph
    when it is lowered. One that differs is not built, with an error that names the
    tensor: ``lowering-fallback`` leaves its ops on the CPU, strict mode raises it.

"""

from __future__ import annotations

from typing import Any

from arm_ext.fixes._hooks import wrap_cut, wrap_tag_module
from arm_ext.lowering.partition_boundary import drop_unread_inputs
from arm_ext.partitioner.delegate_boundary import (
    check_boundary,
    declared_boundary,
    mend_boundaries,
)
from arm_ext.patcher import Patcher
from executorch.exir.backend.utils import WhyNoPartitionReporter


def install(patcher: Patcher) -> None:
    wrap_tag_module(patcher, _mend_boundaries)
    wrap_cut(patcher, "_partition_and_lower_one_graph_module", _cut_partitions)
    wrap_cut(patcher, "_create_partitions_in_graph_module", _cut_partitions)
    patcher.wrap(
        "executorch.backends.arm.tosa.backend:TOSABackend._preprocess",
        _checked,
        parameters=("edge_program", "compile_spec"),
    )


def _mend_boundaries(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    tags = wrapped(*args, **kwargs)
    if not instance.tosa_spec.support_integer():
        return tags
    module, program, reporter, *_ = args
    support = instance._create_operator_support(program, WhyNoPartitionReporter())
    return tags - mend_boundaries(
        module.graph,
        lambda node: support.is_node_supported({}, node),
        reporter.report_reject,
    )


def _cut_partitions(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    module, result, *_ = args
    drop_unread_inputs(module, result.partition_tags)
    return wrapped(*args, **kwargs)


def _checked(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    program = args[0] if args else kwargs["edge_program"]
    declared = declared_boundary(program)
    result = wrapped(*args, **kwargs)
    check_boundary(declared, result.processed_bytes)
    return result
