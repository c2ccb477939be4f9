# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The line of the model that a node comes from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.fx import Node

_TORCH = str(Path(torch.__file__).parent)
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

    Lines inside torch and in code that torch generated count only when there is
    no other: they say nothing about the model.

    """
    frames = [
        Source(frame["file"], int(frame["line"]), frame["code"].strip())
        for frame in _FRAME.finditer(node.meta.get("stack_trace") or "")
    ]
    of_model = [f for f in frames if not f.file.startswith((_TORCH, "<"))]
    return next(reversed(of_model or frames), None)
