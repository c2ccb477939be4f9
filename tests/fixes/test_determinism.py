# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A program gives one ``.pte``, whatever the hashes and beside other processes."""

import hashlib
import os
import subprocess
import sys

import torch
from arm_ext.targets import lower, TARGETS

SEEDS = ("0", "1", "2")


class Net(torch.nn.Module):
    """Several partitions, shared constants, ops kept whole, and rewritten indices."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(6, 6) for _ in range(4))
        self.index = torch.tensor([0, 2, 1])

    def forward(self, x):
        y = torch.nn.functional.hardswish(x)
        for layer in self.layers:
            z = torch.nn.functional.pad(layer(y), (1, 0))[:, :6]
            y = torch.atan2(z[self.index], x)
        return y + x, y.argmax(1)


def digest():
    torch.manual_seed(0)
    module, x = Net().eval(), torch.randn(3, 6)
    edge = lower(module, (x,), TARGETS["vgf"])
    assert len(list(edge.exported_program().graph_module.children())) > 3
    return hashlib.sha256(edge.to_executorch().buffer).hexdigest()


def test_the_same_pte_in_processes_with_other_hashes():
    processes = [
        subprocess.Popen(
            [sys.executable, __file__],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in SEEDS
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(SEEDS)
    assert len(set(outputs)) == 1 and outputs[0].startswith("digest ")


if __name__ == "__main__":
    print("digest", digest())
