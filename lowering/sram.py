# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The SRAM that an Ethos-U delegate needs for its activations."""

from __future__ import annotations

from collections.abc import Sequence

# Memory modes of Vela's own configuration with the arena in SRAM. In the others it is
# in DRAM, and Vela keeps to the size of the SRAM beside it.
_IN_SRAM = ("Sram_Only", "Shared_Sram")
_MIB = 1 << 20
# SRAM of Arm's reference systems: Corstone-300, Corstone-320.
_REFERENCE = {"ethos-u55": 2 * _MIB, "ethos-u65": 2 * _MIB, "ethos-u85": 4 * _MIB}


def too_large(flags: Sequence[str], arena: int) -> str | None:
    """Return what to tell of an arena that the SRAM does not hold, None if it does.

    Args:
        flags (Sequence[str]): Vela's. ``--arena-cache-size`` is the size of the SRAM
            in bytes; without it, that of Arm's reference system for the target is
            assumed.
        arena (int): Bytes that Vela needs for the activations.

    """
    options = dict(flag.lstrip("-").split("=", 1) for flag in flags if "=" in flag)
    if options.get("memory-mode") not in _IN_SRAM:
        return None
    target = options.get("accelerator-config", "")
    given = options.get("arena-cache-size")
    size = int(given) if given else _REFERENCE.get(target.rpartition("-")[0])
    if size is None or arena <= size:
        return None
    whose = "" if given else " of Arm's reference system"
    return (
        f"a delegate for {target} needs {arena} bytes of SRAM for its activations, more "
        f"than the {size}{whose}. Use smaller inputs or memory_mode="
        '"Dedicated_Sram_384KB" with DRAM; EthosUCompileSpec(..., extra_flags='
        '["--arena-cache-size=BYTES"]) says how much SRAM there is.'
    )
