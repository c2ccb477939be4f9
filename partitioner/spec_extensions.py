# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Which TOSA extensions would move ops from the CPU into a delegate.

A TOSA specification names its extensions (``bf16``, ``fp8e4m3``, ``cf``, ...),
and an op that needs one it does not name stays on the CPU. The answer here is
exact, not a guess from dtypes: a copy of the program is partitioned again for
the extended specification, and only ops that this changes are counted.

"""

from __future__ import annotations

import copy
import operator
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from arm_ext.lowering.delegation_tags import named_bodies, TAG
from arm_ext.partitioner.source import Source, source_of
from executorch.backends.arm.tosa.mapping import UNSUPPORTED_DTYPES
from executorch.backends.arm.tosa.partitioner import (
    DecomposableResizeSupported,
    TOSAPartitioner,
)
from executorch.backends.arm.tosa.specification import (
    TosaLoweringContext,
    TosaSpecification,
)
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch._export.utils import _get_shape_env_from_gm
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

# A dtype that the backend cannot serialize is not advised: the support checks
# take int64 for TOSA 1.1 with the extension, and the lowering throws.
_EXTENSION_OF: Mapping[torch.dtype, str] = {
    dtype: extension
    for dtype, extension in (
        (torch.bfloat16, "bf16"),
        (torch.float8_e4m3fn, "fp8e4m3"),
        (torch.float8_e5m2, "fp8e5m2"),
        (torch.int16, "int16"),
        (torch.int64, "int64"),
    )
    if dtype not in UNSUPPORTED_DTYPES
}
_CONTROL_FLOW = (torch.ops.higher_order.cond, torch.ops.higher_order.while_loop)
_COMPILE_SPECS = {"VgfBackend": "VgfCompileSpec"}
# What an extension needs beside the specification: (backend, extension).
_CAVEATS: Mapping[tuple[str, str], str] = {
    ("VgfBackend", "cf"): "model converter 0.10.0 does not compile TOSA control flow",
}


@dataclass(frozen=True)
class MissedOp:
    """An op that is on the CPU for want of an extension.

    Attributes:
        node (str): Name of the node in the edge program.
        op (str): Name of the op, ``"aten.linear.default"``.
        extensions (tuple[str, ...]): The missing extensions its dtypes or its
            kind ask for.
        source (Source | None): The line of the model, where export kept it.

    """

    node: str
    op: str
    extensions: tuple[str, ...]
    source: Source | None


@dataclass(frozen=True)
class MissingExtensions:
    """The ops that a longer specification string would delegate.

    Attributes:
        spec (str): The specification the program was partitioned for.
        extensions (tuple[str, ...]): What to add, no more than is needed.
        extended_spec (str): The specification with them.
        compile_spec (str): Name of the class that takes the string.
        ops (tuple[MissedOp, ...]): The ops that would be delegated, in graph
            order, branches and loop bodies first.
        caveats (tuple[str, ...]): What the target's compiler cannot do yet with
            an extension that the partitioner takes.

    """

    spec: str
    extensions: tuple[str, ...]
    extended_spec: str
    compile_spec: str
    ops: tuple[MissedOp, ...]
    caveats: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = Counter("+".join(op.extensions) for op in self.ops)
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
        first = "; ".join(f"{op.op} at {op.source or op.node}" for op in self.ops[:3])
        more = f"; and {len(self.ops) - 3} more" if len(self.ops) > 3 else ""
        return (
            f"{self.spec} leaves ops on the CPU that its extensions would take "
            f"({kinds}): {first}{more}. "
            f'Pass {self.compile_spec}("{self.extended_spec}") to delegate them.'
            + "".join(f" But {caveat}." for caveat in self.caveats)
        )


def missing_extensions(
    partitioner: TOSAPartitioner, program: ExportedProgram
) -> MissingExtensions | None:
    """Return which extensions would delegate more of a partitioned program.

    Args:
        partitioner (TOSAPartitioner): The partitioner that tagged the program.
        program (ExportedProgram): An edge program after ``partition()``; it is
            not changed.

    Returns:
        MissingExtensions | None: None if the target's specification cannot be
            chosen (Ethos-U hardware fixes it), or if no extension that is valid
            for its profiles changes what is delegated.

    """
    backend = partitioner.delegation_spec.backend_id
    if backend == "EthosUBackend":
        return None
    spec = partitioner.tosa_spec
    left = {node for node in _calls(program.graph_module) if not _is_tagged(node)}
    wanted = {e for node in left for e in _features(node) if _can_add(spec, e)}
    if not wanted:
        return None
    taken = left & _taken(partitioner, program, _extend(spec, wanted))
    if not taken:
        return None
    for extension in sorted(wanted):
        fewer = wanted - {extension}
        if not fewer:
            break
        if left & _taken(partitioner, program, _extend(spec, fewer)) == taken:
            wanted = fewer
    return MissingExtensions(
        spec=str(spec),
        extensions=tuple(sorted(wanted)),
        extended_spec=str(_extend(spec, wanted)),
        compile_spec=_COMPILE_SPECS.get(backend, "TosaCompileSpec"),
        ops=tuple(
            _missed_op(node, wanted)
            for node in _calls(program.graph_module)
            if node in taken and node.target is not operator.getitem
        ),
        caveats=tuple(
            _CAVEATS[backend, extension]
            for extension in sorted(wanted)
            if (backend, extension) in _CAVEATS
        ),
    )


def _missed_op(node: Node, extensions: set[str]) -> MissedOp:
    asked = tuple(sorted(_features(node) & extensions))
    return MissedOp(
        node=node.name,
        op=getattr(node.target, "__name__", str(node.target)),
        extensions=asked or tuple(sorted(extensions)),
        source=source_of(node),
    )


def _features(node: Node) -> set[str]:
    """Return the extensions that an op may need, judged by dtypes and kind."""
    features = set()
    if node.target in _CONTROL_FLOW:
        features.add("cf")
    if "tosa_mxfp" in str(node.target):
        features.add("mxfp")
    for value in _values(node):
        if isinstance(value, torch.SymInt):
            features.add("shape")
        if isinstance(value, torch.Tensor):
            features.add(_EXTENSION_OF.get(value.dtype, ""))
            if any(isinstance(size, torch.SymInt) for size in value.shape):
                features.add("shape")
    return features - {""}


def _values(node: Node) -> Iterator[Any]:
    for source in (node, *node.all_input_nodes):
        value = source.meta.get("val")
        yield from value if isinstance(value, (list, tuple)) else (value,)


def _can_add(spec: TosaSpecification, extension: str) -> bool:
    if spec.support_extension(extension):
        return False
    tosa: Any = spec  # the class of each TOSA version has these two
    return any(extension in tosa.valid_extensions[p] for p in tosa.profiles)


def _extend(spec: TosaSpecification, extensions: set[str]) -> TosaSpecification:
    return TosaSpecification.create_from_string(
        "+".join([str(spec), *sorted(extensions)])
    )


def _taken(
    partitioner: TOSAPartitioner, program: ExportedProgram, spec: TosaSpecification
) -> set[Node]:
    """Return the nodes of ``program`` that would be delegated for ``spec``."""
    other = copy.copy(partitioner)
    other.tosa_spec = spec
    other._decomposable_resize_support = DecomposableResizeSupported(spec)
    originals: dict[Node, Node] = {}
    scratch = copy.copy(program)
    scratch._graph_module = _untagged_copy(program.graph_module, originals)
    shape_env = _get_shape_env_from_gm(program.graph_module)
    with TosaLoweringContext(spec, shape_env):
        other._tag_module(scratch.graph_module, scratch, WhyNoPartitionReporter())
    return {original for node, original in originals.items() if _is_tagged(node)}


def _untagged_copy(module: GraphModule, originals: dict[Node, Node]) -> GraphModule:
    """Copy the graphs of a module, not its tensors; fill copy -> original."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    output = graph.graph_copy(module.graph, copies)
    source = module.graph.output_node()
    copies[source] = graph.output(output)
    copies[source].meta = dict(source.meta)
    for node, copied in copies.items():
        copied.meta.pop(TAG, None)
        originals[copied] = node
    copied_module = GraphModule(module, graph)
    for name, branch in named_bodies(module):
        setattr(copied_module, name, _untagged_copy(branch, originals))
    return copied_module


def _calls(module: GraphModule) -> Iterator[Node]:
    """Yield the calls of a module, those of its branches and bodies first."""
    for _, branch in named_bodies(module):
        yield from _calls(branch)
    for node in module.graph.nodes:
        if node.op == "call_function":
            yield node


def _is_tagged(node: Node) -> bool:
    return TAG in node.meta
