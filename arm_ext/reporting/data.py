# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The data of a report."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SCHEMA = 1


@dataclass(frozen=True)
class Op:
    """An op of the model, wherever it runs.

    Attributes:
        name (str): Name of the node; that of an op in a delegate begins with the
            delegate's name and a slash.
        op (str): ``"aten.add.Tensor"``.
        delegate (int | None): Index of the delegate that runs it; None on the CPU.
        macs (int): Multiply-accumulate operations of one inference.
        inputs (tuple[str, ...]): Names of the ops that it reads.
        source (str | None): The line of the model, where export kept it.

    """

    name: str
    op: str
    delegate: int | None
    macs: int
    inputs: tuple[str, ...] = ()
    source: str | None = None

    @property
    def computes(self) -> bool:
        """False for Q/DQ, which only mark where numbers are quantized."""
        return "quantize_per" not in self.op


@dataclass(frozen=True)
class CpuOp:
    """An op that is left on the CPU.

    Attributes:
        name (str): Name of the node.
        op (str): ``"aten.atan2.default"``.
        reasons (tuple[str, ...]): All that the partitioner has against it.
        remedies (tuple[str, ...]): What would take it.
        source (str | None): The line of the model.

    """

    name: str
    op: str
    reasons: tuple[str, ...]
    remedies: tuple[str, ...]
    source: str | None


@dataclass(frozen=True)
class Estimate:
    """What Vela says of a delegate.

    Attributes:
        cycles (int): Total cycles of one inference.
        sram_bytes (int): Most SRAM that is in use at once.
        layers (tuple[Mapping[str, str], ...]): Rows of Vela's table per layer, by the
            heads of its columns.

    """

    cycles: int
    sram_bytes: int
    layers: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Delegate:
    """A delegate.

    Attributes:
        name (str): Name of its module in the lowered program.
        backend (str): ``"VgfBackend"`` or another.
        payload_bytes (int): Size of what is in the ``.pte``.
        estimate (Estimate | None): For Ethos-U.

    """

    name: str
    backend: str
    payload_bytes: int
    estimate: Estimate | None = None


@dataclass(frozen=True)
class Report:
    """What runs where.

    Attributes:
        model (str): What was lowered.
        target (str): What for.
        side (str): ``"patched"`` or ``"stock"``.
        delegates (tuple[Delegate, ...]): In the order of their calls.
        ops (tuple[Op, ...]): All ops, Q/DQ included, in graph order.
        cpu_ops (tuple[CpuOp, ...]): Those that compute something on the CPU.
        boundary_bytes (int): Bytes of the values that a delegate hands out, or that
            it reads and did not compute, in one inference.
        warnings (tuple[str, ...]): What the lowering warned of.
        error (str | None): The first line of what it raised; the rest is then empty.

    """

    model: str
    target: str
    side: str = "patched"
    delegates: tuple[Delegate, ...] = ()
    ops: tuple[Op, ...] = ()
    cpu_ops: tuple[CpuOp, ...] = ()
    boundary_bytes: int = 0
    warnings: tuple[str, ...] = ()
    error: str | None = None

    @property
    def compute(self) -> tuple[Op, ...]:
        """The ops that compute something."""
        return tuple(op for op in self.ops if op.computes)

    @property
    def op_share(self) -> float:
        """Share of the compute ops that are delegated, 0 to 1."""
        return _share([1 for _ in self._delegated], [1 for _ in self.compute])

    @property
    def mac_share(self) -> float:
        """Share of the multiply-accumulates that are delegated, 0 to 1."""
        return _share(
            [op.macs for op in self._delegated], [op.macs for op in self.compute]
        )

    @property
    def is_whole(self) -> bool:
        """Whether one delegate does it all."""
        return self.error is None and len(self.delegates) == 1 and not self.cpu_ops

    @property
    def _delegated(self) -> list[Op]:
        return [op for op in self.compute if op.delegate is not None]

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON has it, with its shares."""
        return {
            "schema": SCHEMA,
            **dataclasses.asdict(self),
            "op_share": self.op_share,
            "mac_share": self.mac_share,
            "is_whole": self.is_whole,
        }

    def __str__(self) -> str:
        from arm_ext.reporting.text import text

        return text(self)


def _share(part: list[int], whole: list[int]) -> float:
    return sum(part) / sum(whole) if sum(whole) else 1.0
