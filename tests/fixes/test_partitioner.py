# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""``partition()`` tags exactly what stock tags, on float and on integer targets."""

import logging

import arm_ext
import pytest
import torch
from arm_ext.programs.partition_time import Blocks
from arm_ext.targets import lower, quantize, Target, TARGETS
from executorch.backends.arm.tosa import partitioner as tosa_partitioner
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch.export import export


class Attention(torch.nn.Module):
    """Its Q/DQ bridge segments of a partition when the target is integer only."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.qkv = torch.nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        scores = torch.softmax(q @ k.transpose(-1, -2), -1)
        return x + torch.atan2(scores @ v, x)


class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(
            x.sum() > 0,
            lambda x: torch.atan2(x + 1, x) * 2,
            lambda x: torch.relu(x) - 1,
            (x,),
        )


def tags(module, inputs, target):
    """Partition a module; return the tag of every node and the partitions' tags."""
    program = to_edge(
        export(module, inputs),
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    ).exported_program()
    result = target.partitioner().partition(program)
    nodes = [
        (node.name, node.meta.get("delegation_tag"))
        for graph in program.graph_module.modules()
        for node in graph.graph.nodes
    ]
    return nodes, set(result.partition_tags)


SMALL = (torch.linspace(-1, 1, 32).reshape(1, 4, 8),)
PROGRAMS = {"blocks": Blocks(6, 8), "attention": Attention(), "branches": Branches()}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", ["vgf", "vgf-int", "ethos-u85-256", "ethos-u55-128"])
def test_tags_equal_stock(name, target):
    module = PROGRAMS[name].eval()
    if target != "vgf":
        module = quantize(module, SMALL, TARGETS[target])
    with arm_ext.patched(disable=["partitioner"]):
        stock = tags(module, SMALL, TARGETS[target])
    assert tags(module, SMALL, TARGETS[target]) == stock


def test_preserved_io_quantization_equals_stock():
    class Preserving(Target):
        def compile_spec(self):
            return super().compile_spec()._set_preserve_io_quantization(True)

    preserving = Preserving("vgf")
    module = quantize(Blocks(2, 8).eval(), SMALL, preserving)
    with arm_ext.patched(disable=["partitioner"]):
        stock = tags(module, SMALL, preserving)
    assert tags(module, SMALL, preserving) == stock


def payloads(edge):
    program = edge.exported_program()
    return [
        getattr(program.graph_module, node.target).processed_bytes
        for node in program.graph.nodes
        if node.op == "get_attr"
    ]


@pytest.mark.parametrize("target", ["vgf", "ethos-u85-256"])
def test_payloads_equal_stock(target):
    module = Blocks(2, 8).eval()
    if target != "vgf":
        module = quantize(module, SMALL, TARGETS[target])
    ours = payloads(lower(module, SMALL, TARGETS[target]))
    with arm_ext.patched(disable=["partitioner"]):
        assert payloads(lower(module, SMALL, TARGETS[target])) == ours


def test_stock_partitioner_is_untouched_elsewhere():
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner

    assert tosa_partitioner.CapabilityBasedPartitioner is not CapabilityBasedPartitioner
    with arm_ext.patched(only=()):
        assert tosa_partitioner.CapabilityBasedPartitioner is CapabilityBasedPartitioner
        assert tosa_partitioner.WhyNoPartitionReporter is WhyNoPartitionReporter


def test_reject_table_is_made_for_whoever_reads_it(caplog):
    with caplog.at_level(logging.INFO, logger=tosa_partitioner.__name__):
        tags(Blocks(1, 8).eval(), SMALL, TARGETS["vgf"])
    assert "atan2" in caplog.text
