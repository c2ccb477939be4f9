# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A delegate that needs more SRAM than there is, is told of."""

import warnings

import arm_ext
import pytest
import torch
from arm_ext.lowering.sram import too_large
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower


class Add(torch.nn.Module):
    def forward(self, x):
        return x + x


def lower(flags=None, mode=None):
    """Return the messages about SRAM and the ``.pte`` of a sum of 4 KiB tensors."""
    spec = EthosUCompileSpec("ethos-u85-256", memory_mode=mode, extra_flags=flags)
    program = torch.export.export(Add(), (torch.ones(1, 1024, dtype=torch.int32),))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        edge = to_edge_transform_and_lower(
            program,
            partitioner=[EthosUPartitioner(spec)],
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
        )
    messages = [str(w.message) for w in caught]
    return [m for m in messages if "SRAM" in m], edge.to_executorch().buffer


def test_one_warning_gives_both_sizes_and_changes_nothing():
    flags = ["--arena-cache-size=1000"]
    with arm_ext.patched():
        (message,), pte = lower(flags)
    assert "8192 bytes" in message or "4096 bytes" in message
    assert "more than the 1000." in message and "ethos-u85-256" in message
    with arm_ext.patched(disable=["ethosu-sram"]):
        assert lower(flags) == ([], pte)


def test_nothing_where_it_fits():
    with arm_ext.patched():
        assert lower()[0] == []


@pytest.mark.parametrize(
    ("target", "mode", "flags", "arena", "said"),
    [
        ("ethos-u55-128", None, [], 2 << 20, False),
        ("ethos-u55-128", None, [], (2 << 20) + 1, True),
        ("ethos-u85-256", None, [], 4 << 20, False),
        ("ethos-u85-256", None, [], (4 << 20) + 1, True),
        ("ethos-u65-256", None, [], 1 << 30, False),
        ("ethos-u65-256", "Shared_Sram", [], 1 << 30, True),
        ("ethos-u85-256", None, ["--arena-cache-size=9000000"], 8 << 20, False),
        ("ethos-u85-256", "Dedicated_Sram", ["--arena-cache-size=9"], 8 << 20, False),
    ],
)
def test_the_sram_of_a_target(target, mode, flags, arena, said):
    spec = EthosUCompileSpec(target, memory_mode=mode, extra_flags=flags)
    message = too_large(spec.compiler_flags, arena)
    assert bool(message) is said
    if said:
        assert str(arena) in message
