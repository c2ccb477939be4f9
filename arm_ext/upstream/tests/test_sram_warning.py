# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

import pytest
import torch
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.exir import to_edge_transform_and_lower
from torch.export import export


class Add(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x


def lower(flag: str) -> None:
    compile_spec = EthosUCompileSpec("ethos-u85-256", extra_flags=[flag])
    exported = export(Add(), (torch.ones(1, 1024, dtype=torch.int32),))
    to_edge_transform_and_lower(exported, partitioner=[EthosUPartitioner(compile_spec)])


def test_too_little_sram_u85_INT_warns(recwarn):
    lower("--arena-cache-size=100000")
    assert not [w for w in recwarn if "SRAM" in str(w.message)]
    with pytest.warns(UserWarning, match="bytes of SRAM .* more than the 1000"):
        lower("--arena-cache-size=1000")
