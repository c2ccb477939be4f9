# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Ask Vela what a delegate costs."""

from __future__ import annotations

import contextlib
import csv
import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arm_ext.reporting.data import Estimate


def estimate(tosa: bytes, spec: Any) -> Estimate:
    """Return Vela's estimate of one TOSA flatbuffer.

    Args:
        tosa (bytes): The flatbuffer.
        spec (EthosUCompileSpec): What it is compiled for.

    """
    from ethosu.vela import vela

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "delegate.tosa"
        file.write_bytes(tosa)
        flags = [*spec.compiler_flags, "--verbose-performance"]
        with contextlib.redirect_stdout(io.StringIO()):
            vela.main([*flags, f"--output-dir={folder}", str(file)])
        (summary,) = _rows(folder, "*summary*.csv")
        return Estimate(
            cycles=round(float(summary["cycles_total"])),
            sram_bytes=round(1024 * float(summary["sram_memory_used"])),
            layers=tuple(_rows(folder, "*per-layer.csv")),
        )


def _rows(folder: str, pattern: str) -> list[Mapping[str, str]]:
    (path,) = Path(folder).glob(pattern)
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
