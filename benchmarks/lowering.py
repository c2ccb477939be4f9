# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Time a whole lowering with and without the fast-lowering fix, against stock.

    python -m arm_ext.benchmarks.lowering
    python -m arm_ext.benchmarks.lowering --models blocks-100 blocks-200 resnet18-224 transformer-12
    python -m arm_ext.benchmarks.lowering --models blocks-25 blocks-50 --targets vgf

A model is a family and a size: ``blocks`` (the report's, with one op each that stays
on the CPU), ``resnet18`` (the size of the image), ``transformer`` (layers), ``diamonds``
(a ladder of them, in one delegate) or ``chain`` (ops, every second on the CPU); a target
is ``vgf`` in float or ``ethos-u85-256`` in INT8. What is timed is
``to_edge_transform_and_lower`` of an exported (and quantized) program, in a fresh
process for each of

* ``stock``: no fix at all,
* ``partitioner``: the partitioner fix alone, so stock with its partitioner's time
  taken out,
* ``fast``: the partitioner fix and fast-lowering.

A record has CPU seconds (with those of compilers that were started) and wall
seconds of each, the ratio to the other two, and whether the ``.pte`` and all payloads
are the same bytes; a difference is an error. The last records have the exponent of a
power law fitted to the CPU seconds over the number of blocks.

"""

import argparse
import hashlib
import json
import logging
import os
import subprocess
import sys
import time

import arm_ext
import torch
from arm_ext.benchmarks.measure import exponent, Report
from arm_ext.programs.partition_time import Blocks
from arm_ext.targets import lower, quantize, TARGETS
from torch import nn
from torch.export import export

MODES = {
    "stock": (),
    "partitioner": ("partitioner",),
    "fast": ("partitioner", "fast-lowering"),
}


class Residual(nn.Module):
    """The basic block of a ResNet."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.skip = nn.Identity()
        if inputs != outputs:
            self.skip = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                nn.BatchNorm2d(outputs),
            )

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def resnet18():
    """Return a ResNet-18 image encoder with a projection of 64 features."""
    layers = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    channels = 64
    for outputs in (64, 128, 256, 512):
        stride = 1 if outputs == channels else 2
        layers += [Residual(channels, outputs, stride), Residual(outputs, outputs, 1)]
        channels = outputs
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 64)
    )


class Layer(nn.Module):
    """A pre-norm transformer layer: (1, tokens, width) to the same."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        normed = self.norms[0](x)
        q, k, v = (
            project(normed).view(batch, tokens, self.heads, -1).transpose(1, 2)
            for project in self.qkv
        )
        weights = torch.softmax(q @ k.transpose(-1, -2) * self.scale, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))


class Diamonds(nn.Module):
    """A ladder of diamonds: two ops on one input, joined by a third."""

    def __init__(self, count):
        super().__init__()
        self.count = count

    def forward(self, x):
        for _ in range(self.count):
            x = torch.relu(x) + torch.sigmoid(x)
        return x


class Chain(nn.Module):
    """A chain of ops, every second of which stays on the CPU."""

    def __init__(self, count):
        super().__init__()
        self.count = count

    def forward(self, x):
        for i in range(self.count):
            x = torch.atan2(x, x) if i % 2 else torch.sigmoid(x)
        return x


FAMILIES = {
    "blocks": lambda n: (Blocks(n), torch.randn(1, 32)),
    "resnet18": lambda n: (resnet18(), torch.randn(1, 3, n, n)),
    "transformer": lambda n: (
        nn.Sequential(*(Layer() for _ in range(n))),
        torch.randn(1, 16, 64),
    ),
    "diamonds": lambda n: (Diamonds(n), torch.randn(1, 32)),
    "chain": lambda n: (Chain(n), torch.randn(1, 32)),
}


def cpu_seconds():
    """CPU seconds of this process and of the children that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measure_here(model, target, mode):
    """Lower a model in this process; return seconds and hashes of what came out."""
    torch.manual_seed(0)
    family, size = model.split("-")
    module, x = FAMILIES[family](int(size))
    with arm_ext.patched(only=()):
        module = module.eval()
        if TARGETS[target].is_ethosu:
            module = quantize(module, (x,), TARGETS[target])
        program = export(module, (x,))
    with arm_ext.patched(only=MODES[mode]):
        cpu, wall = cpu_seconds(), time.perf_counter()
        edge = lower(program, (x,), TARGETS[target])
        cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
        pte = edge.to_executorch().buffer
    graph_module = edge.exported_program().graph_module
    payloads = [
        getattr(graph_module, node.target).processed_bytes
        for node in graph_module.graph.find_nodes(op="get_attr")
    ]
    return {
        "cpu_s": cpu,
        "wall_s": wall,
        "delegates": len(payloads),
        "sha256": [hashlib.sha256(data).hexdigest() for data in (pte, *payloads)],
    }


def measure(model, target, mode):
    """Do :func:`measure_here` in a new process whose hashes are not random."""
    command = [sys.executable, "-W", "ignore", "-m", __spec__.name]
    result = subprocess.run(
        [*command, "--measure", model, target, mode],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(result.stdout.splitlines()[-1])


def compare(model, target, modes):
    """Return the record of one model on one target."""
    family, size = model.split("-")
    runs = {mode: measure(model, target, mode) for mode in modes}
    fast = runs["fast"]
    record = {
        "model": model,
        "target": target,
        family: int(size),
        "delegates": fast["delegates"],
    }
    for mode, run in runs.items():
        record |= {f"{mode}_cpu_s": run["cpu_s"], f"{mode}_wall_s": run["wall_s"]}
        if mode != "fast":
            record[f"times_faster_than_{mode}"] = run["cpu_s"] / fast["cpu_s"]
        if run["sha256"] != fast["sha256"]:
            raise AssertionError(f"{model} on {target}: fast differs from {mode}")
    return {**record, "identical": True} if len(runs) > 1 else record


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--models",
        nargs="+",
        default=[
            "blocks-50",
            "blocks-100",
            "blocks-200",
            "resnet18-64",
            "transformer-12",
            "diamonds-50",
            "chain-50",
        ],
    )
    parser.add_argument(
        "--targets", nargs="+", default=["vgf", "ethos-u85-256"], choices=TARGETS
    )
    parser.add_argument(
        "--modes",
        nargs="+",
        default=["partitioner", "fast"],
        choices=MODES,
        help="what to measure; fast is always measured",
    )
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    Report.add_argument(parser)
    args = parser.parse_args(argv)
    if args.measure:
        logging.disable(logging.WARNING)
        print(json.dumps(measure_here(*args.measure)))
        return
    modes = list(dict.fromkeys([*args.modes, "fast"]))
    report = Report()
    for target in args.targets:
        records = [report.add(compare(model, target, modes)) for model in args.models]
        blocks = [record for record in records if "blocks" in record]
        if len(blocks) > 1:
            report.add(
                {"target": target}
                | {
                    f"{mode}_cpu_s_exponent": exponent(
                        blocks, f"{mode}_cpu_s", "blocks"
                    )
                    for mode in modes
                }
            )
    report.write(args.json)


if __name__ == "__main__":
    main()
