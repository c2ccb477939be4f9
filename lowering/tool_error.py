# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What an exception of the Arm passes, the serializer or a compiler says."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from executorch.backends.arm.tosa import TosaSpecification
from executorch.exir import to_edge
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.pass_base import ExportPass
from torch.fx import Node

# ``torch.fx`` appends the node and the trace of the model to a message.
_WHILE_EXECUTING = re.compile(r"\s*While executing %(\w+)\b.*", re.DOTALL)
_QUOTED = re.compile(r"['\"](\w+)['\"]")
_STDERR = re.compile(r"^Stderr:\n(.*?)^Stdout:", re.DOTALL | re.MULTILINE)
_MOST = 400  # characters
_PACKAGES = ("arm_ext", "executorch", "torch")


def tool_words(error: BaseException) -> str:
    """Return in one line what the tool said, without traces and commands."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = str(error)
    stderr = _STDERR.search(text)
    words = stderr.group(1) if stderr else _WHILE_EXECUTING.sub("", text)
    line = "; ".join(part.strip() for part in words.splitlines() if part.strip())
    if len(line) > _MOST:
        line = line[:_MOST] + " ..."
    if type(error) is RuntimeError and line:
        return line
    return f"{type(error).__name__}: {line}" if line else _place(error)


def _place(error: BaseException) -> str:
    """Say where an exception without a message was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {frames[-1].name}: {frames[-1].line}" if frames else ""
    return f"{type(error).__name__}{where}"


def named_nodes(error: BaseException, nodes: Mapping[str, Node]) -> tuple[str, ...]:
    """Return the names of those of a partition's nodes that an error is about.

    It says so in its message, or the frame that raised it has the node at hand. A node
    that a pass made stands for the one that it was made from, if that is known.

    Args:
        error (BaseException): What the lowering raised.
        nodes (Mapping): The nodes of the partition by their names before the passes.

    """
    text = str(error)
    said = set(_QUOTED.findall(text))
    if executed := _WHILE_EXECUTING.search(text):
        said.add(executed.group(1))
    names = tuple(name for name in nodes if name in said)
    return names or _made_from(_node_at_hand(error), nodes)


def _node_at_hand(error: BaseException) -> Node | None:
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        node = frame.f_locals.get("node")
        if isinstance(node, Node) and node.op == "call_function":
            found = node
    return found


def is_of_a_foreign_pass(error: BaseException) -> bool:
    """Whether a pass raised it that is neither executorch's nor ours.

    That is a bug in the user's own code, which has to see it.

    """
    while error.__cause__ is not None:
        error = error.__cause__
    for frame, _ in traceback.walk_tb(error.__traceback__):
        owner = frame.f_locals.get("self")
        call = type(owner).call if isinstance(owner, ExportPass) else None
        if getattr(call, "__code__", None) is frame.f_code:
            return call.__module__.partition(".")[0] not in _PACKAGES
    return False


def _made_from(derived: Node | None, nodes: Mapping[str, Node]) -> tuple[str, ...]:
    if derived is None:
        return ()
    if derived.name in nodes:
        return (derived.name,)
    origin = _origin(derived)
    names = tuple(name for name, node in nodes.items() if _origin(node) == origin)
    return names if origin and len(names) == 1 else ()


def _origin(node: Node) -> tuple[str, int] | None:
    """Return the node of the exported program that a node comes from."""
    sources = node.meta.get("from_node")
    return (sources[-1].name, sources[-1].graph_id) if sources else None


class _Add(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


def works_at_all(
    preprocess: Callable[..., Any], compile_specs: Sequence[CompileSpec]
) -> bool:
    """Whether a backend lowers the sum of two tensors.

    If not, its error is not about the program that it was given.

    Args:
        preprocess (Callable): The backend's.
        compile_specs (Sequence[CompileSpec]): What to lower for.

    """
    try:
        (spec,) = (s.value.decode() for s in compile_specs if s.key == "tosa_spec")
        integer = TosaSpecification.create_from_string(spec).support_integer()
        dtype = torch.int32 if integer else torch.float32
        inputs = torch.ones(4, dtype=dtype), torch.ones(4, dtype=dtype) * 2
        program = to_edge(torch.export.export(_Add(), inputs)).exported_program()
        preprocess(program, compile_specs)
    except (Exception, SystemExit):
        return False
    return True
