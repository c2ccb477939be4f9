# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Time ``VgfPartitioner.partition()`` on the report's blocks, patched and stock.

    arm-ext bench partition
    arm-ext bench partition --blocks 50 100 200 400 800 --stock-blocks 400

Each block is a Linear layer with one op on a side branch that stays on the CPU. A
record has CPU and wall seconds, the ratio to stock in the same process (only up to
--stock-blocks, as stock grows with the cube), the ratio to the bare sweep of the
Arm support checks over all nodes (the floor), and whether every node got the tag
that stock gave it. The last record has the exponent of a power law fitted to the
CPU seconds.

"""

import argparse
import logging

import arm_ext
import torch
from arm_ext.benchmarks.measure import exponent, peak_bytes, Report, timed
from arm_ext.programs.partition_time import Blocks
from arm_ext.targets import TARGETS
from executorch.backends.arm.tosa.specification import TosaLoweringContext
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch.export import export


def edge_program(count):
    program = export(Blocks(count).eval(), (torch.zeros(1, 32),))
    config = EdgeCompileConfig(_check_ir_validity=False)
    return to_edge(program, compile_config=config).exported_program()


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
    cpu, wall, tags = timed(lambda: partition(program), repeat)
    floor = timed(lambda: sweep(program), repeat).cpu
    record = {
        "blocks": count,
        "nodes": len(program.graph.nodes),
        "partitions": len(set(tags) - {None}),
        "cpu_s": cpu,
        "wall_s": wall,
        "times_sweep": cpu / floor,
        "peak_bytes": peak_bytes(lambda: partition(program)),
    }
    if with_stock:
        with arm_ext.patched(disable=["partitioner"]):
            stock_cpu, stock_wall, stock_tags = timed(lambda: partition(program))
        record |= {
            "stock_cpu_s": stock_cpu,
            "stock_wall_s": stock_wall,
            "times_faster": stock_cpu / cpu,
            "same_tags_as_stock": stock_tags == tags,
        }
    return record


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--blocks", type=int, nargs="+", default=[50, 100, 200, 400])
    parser.add_argument("--stock-blocks", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    Report.add_argument(parser)
    args = parser.parse_args(argv)
    arm_ext.apply()
    logging.disable(logging.WARNING)
    report = Report()
    for count in args.blocks:
        report.add(measure(count, count <= args.stock_blocks, args.repeat))
    if len(args.blocks) > 1:
        fits = ("cpu_s", "stock_cpu_s")
        report.add({f"{key}_exponent": exponent(report.records, key) for key in fits})
    report.write(args.json)


if __name__ == "__main__":
    main()
