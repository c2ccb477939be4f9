# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Time ``VgfPartitioner.partition()`` on the report's blocks, patched and stock.

    python benchmarks/partition.py
    python benchmarks/partition.py --blocks 50 100 200 400 800 --stock-blocks 400

Each block is a Linear layer with one op on a side branch that stays on the CPU. A
record has CPU and wall seconds, the ratio to stock in the same process (only up to
--stock-blocks, as stock grows with the cube), the ratio to the bare sweep of the
Arm support checks over all nodes (the floor), and whether every node got the tag
that stock gave it. The last record has the exponent of a power law fitted to the
CPU seconds.

"""

import argparse
import json
import logging
import math
import time

import arm_ext
import torch
from arm_ext.targets import TARGETS
from executorch.backends.arm.tosa.specification import TosaLoweringContext
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch.export import export


class Blocks(torch.nn.Module):
    """The model of the public report: ``atan2`` is not delegated."""

    def __init__(self, count):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(count))

    def forward(self, x):
        for layer in self.layers:
            a = layer(x)
            x = a * torch.sigmoid(a) + torch.atan2(a, a + 2)
        return x


def edge_program(count):
    program = export(Blocks(count).eval(), (torch.zeros(1, 32),))
    config = EdgeCompileConfig(_check_ir_validity=False)
    return to_edge(program, compile_config=config).exported_program()


def timed(function):
    """Return CPU and wall seconds of one call, and its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return time.process_time() - cpu, time.perf_counter() - wall, result


def sweep(program):
    """Ask the Arm support checks about every node, and do nothing else."""
    partitioner = TARGETS["vgf"].partitioner()
    support = partitioner._create_operator_support(program, WhyNoPartitionReporter())
    submodules = dict(program.graph_module.named_modules())
    with TosaLoweringContext(partitioner.tosa_spec, None):
        for node in program.graph.nodes:
            support.is_node_supported(submodules, node)


def partition(program):
    """Partition the program; return each node's tag, and leave none behind."""
    TARGETS["vgf"].partitioner().partition(program)
    return [node.meta.pop("delegation_tag", None) for node in program.graph.nodes]


def measure(count, with_stock, repeat):
    program = edge_program(count)
    partition(program)  # warm caches
    cpu, wall, tags = min(timed(lambda: partition(program)) for _ in range(repeat))
    floor, *_ = min(timed(lambda: sweep(program)) for _ in range(repeat))
    record = {
        "blocks": count,
        "nodes": len(program.graph.nodes),
        "partitions": len(set(tags) - {None}),
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "ratio_to_support_sweep": cpu / floor,
    }
    if with_stock:
        with arm_ext.patched(disable=["partitioner"]):
            stock_cpu, stock_wall, stock_tags = timed(lambda: partition(program))
        record |= {
            "stock_cpu_seconds": stock_cpu,
            "stock_wall_seconds": stock_wall,
            "times_faster_than_stock": stock_cpu / cpu,
            "same_tags_as_stock": stock_tags == tags,
        }
    return record


def exponent(records):
    """Return the slope of a straight line through log(CPU) over log(nodes)."""
    x = [math.log(record["nodes"]) for record in records]
    y = [math.log(record["cpu_seconds"]) for record in records]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    return covariance / sum((a - mean_x) ** 2 for a in x)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--blocks", type=int, nargs="+", default=[50, 100, 200, 400])
    parser.add_argument("--stock-blocks", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", help="also write the records to this file")
    args = parser.parse_args(argv)
    logging.disable(logging.WARNING)
    records = []
    for count in args.blocks:
        records.append(measure(count, count <= args.stock_blocks, args.repeat))
        print(json.dumps(records[-1]), flush=True)
    if len(records) > 1:
        records.append({"growth_exponent": exponent(records)})
        print(json.dumps(records[-1]))
    if args.json:
        with open(args.json, "w") as file:
            json.dump(records, file, indent=2)


if __name__ == "__main__":
    main()
