# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The line of the model that a node comes from."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.fx import Node

_TORCH = str(Path(torch.__file__).parent)
# Where the nodes that no line of the model asked for are made.
_PASSES = re.compile(r"/executorch/(exir|backends/(\w+/_passes|transforms))/")
_OWN_PASSES = str(Path(__file__).parent.parent / "passes")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+).*\n\s*(?P<code>.*)')


@dataclass(frozen=True)
class Source:
    """The line of the model that an op comes from."""

    file: str
    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.code}"


def source_of(node: Node) -> Source | None:
    """Return the innermost line of the model in the node's stack trace.

    Of a node that a pass made for another one, it is the line of the first that
    reads it. Lines inside torch and in code that torch generated count only when
    there is no other: they say nothing about the model.

    """
    for reader in _with_readers(node):
        frames = _frames(reader)
        if frames and not any(map(_is_of_pass, frames)):
            of_model = [f for f in frames if not f.file.startswith((_TORCH, "<"))]
            return (of_model or frames)[-1]
    return next(reversed(_frames(node)), None)


def _frames(node: Node) -> list[Source]:
    return [
        Source(frame["file"], int(frame["line"]), frame["code"].strip())
        for frame in _FRAME.finditer(node.meta.get("stack_trace") or "")
    ]


def _is_of_pass(frame: Source) -> bool:
    return bool(_PASSES.search(frame.file)) or frame.file.startswith(_OWN_PASSES)


def _with_readers(node: Node) -> Iterator[Node]:
    """Yield a node, what reads it, what reads that, and so on, each once."""
    found = {node: None}
    queue = deque(found)
    while queue:
        yield (current := queue.popleft())
        new = [user for user in current.users if user not in found]
        found.update(dict.fromkeys(new))
        queue.extend(new)
