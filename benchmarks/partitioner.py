# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Time the proposal of partitions against torch's, on families of FX graphs.

    arm-ext bench partitioner                         # up to 30,000 nodes
    arm-ext bench partitioner --sizes 1e3 1e4 1e5 1e6 --json out.json

Needs torch alone. Nothing is executed or lowered, so the support check costs next
to nothing and what is timed is the partitioner itself. Each record has CPU and
wall seconds (the best of --repeat runs), the ratio to torch's partitioner in the
same process (only up to --stock-nodes nodes, as it is quadratic at best), the
ratio to the bare sweep over all nodes with the support check, the peak of Python
memory, the number of partitions and the bytes that cross their boundaries. A last
record per family has the exponent of a power law fitted to CPU seconds.

"""

import argparse
import operator
import random

import torch
from arm_ext.benchmarks.measure import exponent, peak_bytes, Report, timed
from arm_ext.partitioner import UnionFindPartitioner
from arm_ext.partitioner.boundary import boundary_bytes
from torch.fx import Graph, GraphModule
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

UNSUPPORTED = torch.atan2


class Support(OperatorSupportBase):
    """Takes every call but :data:`UNSUPPORTED`."""

    def is_node_supported(self, submodules, node):
        return node.op == "call_function" and node.target is not UNSUPPORTED


class Builder:
    """Adds calls to a graph until it has the wanted number of nodes."""

    value = torch.empty(1, 32, device="meta")

    def __init__(self, size):
        self.graph = Graph()
        self.left = size
        self.x = self._with_value(self.graph.placeholder("x"))

    def _with_value(self, node):
        node.meta["val"] = self.value
        self.left -= 1
        return node

    def call(self, target, *args):
        return self._with_value(self.graph.call_function(target, args))

    def module(self, *outputs):
        self.graph.output(outputs)
        return GraphModule(torch.nn.Module(), self.graph)


def blocks(size):
    """Linear layers with a side branch that is not supported, one after another."""
    b = Builder(size)
    x = b.x
    while b.left > 6:
        a = b.call(torch.nn.functional.linear, x, b.call(torch.ones, 32))
        gated = b.call(torch.mul, a, b.call(torch.sigmoid, a))
        x = b.call(torch.add, gated, b.call(UNSUPPORTED, a, b.call(torch.add, a, 2)))
    return b.module(x)


def transformer(size):
    """Layers of attention and feed-forward; every fourth has an unsupported op."""
    b = Builder(size)
    x, layer = b.x, 0
    while b.left > 20:
        layer += 1
        norm = b.call(torch.layer_norm, x, [32])
        q, k, v = (b.call(torch.nn.functional.linear, norm) for _ in range(3))
        scores = b.call(torch.matmul, q, b.call(torch.transpose, k, 0, 1))
        if layer % 4 == 0:
            scores = b.call(UNSUPPORTED, scores, scores)
        x = b.call(torch.add, x, b.call(torch.matmul, b.call(torch.softmax, scores), v))
        norm = b.call(torch.layer_norm, x, [32])
        chunks = b.call(torch.chunk, norm, 2)
        halves = [b.call(operator.getitem, chunks, i) for i in range(2)]
        gated = b.call(torch.mul, halves[0], b.call(torch.sigmoid, halves[1]))
        x = b.call(torch.add, x, b.call(torch.nn.functional.linear, gated))
    return b.module(x)


def diamonds(size):
    """A ladder of diamonds, with an unsupported op on one side of each third."""
    b = Builder(size)
    x, rung = b.x, 0
    while b.left > 4:
        rung += 1
        left = b.call(UNSUPPORTED if rung % 3 == 0 else torch.relu, x)
        x = b.call(torch.add, left, b.call(torch.neg, x))
    return b.module(x)


def fan_out(size):
    """One value with very many users, half of them behind an unsupported op."""
    b = Builder(size)
    shared = b.call(torch.relu, b.x)
    outputs = []
    while b.left > 4:
        outputs.append(b.call(torch.neg, shared))
        outputs.append(b.call(torch.neg, b.call(UNSUPPORTED, shared)))
    return b.module(*outputs)


def chain(size):
    """One long chain, alternately supported and not: as many partitions as can be."""
    b = Builder(size)
    x = b.x
    while b.left > 2:
        x = b.call(torch.relu, b.call(UNSUPPORTED, x))
    return b.module(x)


def random_dag(size):
    """Three in ten ops unsupported, inputs among the last fifty values."""
    b = Builder(size)
    rng = random.Random(size)
    values = [b.x]
    while b.left > 1:
        target = UNSUPPORTED if rng.random() < 0.3 else torch.add
        values.append(b.call(target, *(rng.choice(values[-50:]) for _ in range(2))))
    return b.module(*(value for value in values if not value.users))


FAMILIES = [blocks, transformer, diamonds, fan_out, chain, random_dag]


def crossing(graph_module, partitions):
    group = {node: p.id for p in partitions for node in p.nodes}
    return boundary_bytes(graph_module.graph.nodes, group)


def measure(family, size, options, stock_nodes, repeat):
    graph_module = family(size)
    nodes = graph_module.graph.nodes
    support = Support()

    def sweep():
        for node in reversed(nodes):
            support.is_node_supported({}, node)

    def propose(partitioner=UnionFindPartitioner, options=options):
        return partitioner(graph_module, support, True, **options).propose_partitions()

    sweep_cpu, _, _ = timed(sweep, repeat)
    cpu, wall, partitions = timed(propose, repeat)
    record = {
        "family": family.__name__,
        "nodes": len(nodes),
        "partitions": len(partitions),
        "cpu_s": cpu,
        "wall_s": wall,
        "sweep_cpu_s": sweep_cpu,
        "times_sweep": cpu / sweep_cpu,
        "peak_bytes": peak_bytes(propose),
        "boundary_bytes": crossing(graph_module, partitions),
    }
    if len(nodes) <= stock_nodes:
        plain = {k: v for k, v in options.items() if k != "boundary"}
        stock_cpu, stock_wall, expected = timed(
            lambda: propose(CapabilityBasedPartitioner, plain)
        )
        record |= {
            "stock_cpu_s": stock_cpu,
            "stock_wall_s": stock_wall,
            "times_faster": stock_cpu / cpu,
            "stock_partitions": len(expected),
            "stock_boundary_bytes": crossing(graph_module, expected),
            "same_as_stock": [(p.id, list(p.nodes)) for p in partitions]
            == [(p.id, list(p.nodes)) for p in expected],
        }
    return record


def main(argv=None):
    names = [family.__name__ for family in FAMILIES]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--families", nargs="+", choices=names, default=names)
    parser.add_argument(
        "--sizes", nargs="+", type=float, default=[1e3, 3e3, 1e4, 3e4], help="nodes"
    )
    parser.add_argument("--stock-nodes", type=float, default=1e3)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--skip-horizontal-fusion", action="store_true")
    parser.add_argument(
        "--boundary", choices=["latest", "fewest-bytes"], default="latest"
    )
    Report.add_argument(parser)
    args = parser.parse_args(argv)

    options = {"skip_horizontal_fusion": args.skip_horizontal_fusion}
    if args.boundary != "latest":
        options["boundary"] = args.boundary
    report = Report()
    for family in FAMILIES:
        if family.__name__ not in args.families:
            continue
        records = [
            report.add(measure(family, size, options, args.stock_nodes, args.repeat))
            for size in map(int, args.sizes)
        ]
        report.add(
            {
                "family": family.__name__,
                "exponent": exponent(records, "cpu_s"),
                "sweep_exponent": exponent(records, "sweep_cpu_s"),
                "stock_exponent": exponent(records, "stock_cpu_s"),
            }
        )
    report.write(args.json)


if __name__ == "__main__":
    main()
