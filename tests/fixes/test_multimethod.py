# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What was lowered, twice or in several methods, is what eager gives."""

import operator
import os
import subprocess
import sys

import arm_ext
import pytest
import torch
from arm_ext.targets import TARGETS
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge, to_edge_transform_and_lower
from interpreted import (
    by_op,
    executable,
    InterpretedDelegate,
    InterpretedPartitioner,
)
from torch.export import Dim, export
from torch.utils._pytree import tree_leaves

WITHOUT = ["multimethod"]
TOLERANCE = 1e-5
X = torch.linspace(-0.75, 1, 8).reshape(2, 4)
CONSTANT = torch.tensor([1.0, 2.0, 3.0, 4.0])
UNCHECKED = EdgeCompileConfig(_check_ir_validity=False)


def vgf():
    return TARGETS["vgf"].partitioner()


def ethosu():
    return TARGETS["ethos-u85-256"].partitioner()


def tosa():
    return TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))


class Call(torch.nn.Module):
    """A module from a function of itself and its inputs, with buffers."""

    def __init__(self, function, persistent=True, **buffers):
        super().__init__()
        self.function = function
        for name, value in buffers.items():
            self.register_buffer(name, value.clone(), persistent=persistent)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def lower(programs, *partitioners):
    if isinstance(programs, torch.nn.Module):
        programs = export(programs, (X,))
    return to_edge_transform_and_lower(
        programs, partitioner=list(partitioners), compile_config=UNCHECKED
    )


def delegates(edge, method="forward"):
    return sum(
        node.target is torch.ops.higher_order.executorch_call_delegate
        for module in edge.exported_program(method).graph_module.modules()
        if isinstance(module, torch.fx.GraphModule)
        for node in module.graph.nodes
    )


def check(edge, module, *calls, method="forward", run_delegate=None):
    """Compare what each call gives, one after the other, with eager."""
    calls = calls or ((X,),)
    lowered = executable(edge, method, run_delegate)
    for inputs in calls:
        with torch.no_grad():
            got = tree_leaves(lowered(*inputs))
            wanted = tree_leaves(module(*inputs))
        for g, w in zip(got, wanted, strict=True):
            if isinstance(w, torch.Tensor):
                torch.testing.assert_close(g, w, atol=TOLERANCE, rtol=TOLERANCE)
            else:
                assert g == w
    assert edge.to_executorch().buffer


def fails_on_stock(run, error, match):
    with arm_ext.patched(disable=WITHOUT):
        with pytest.raises(error, match=match):
            run()
    return run()


# A program lowered twice


def scaled():
    return Call(lambda m, x: x * CONSTANT + m.b, persistent=False, b=CONSTANT)


def test_program_lowered_for_vgf_and_then_for_tosa():
    module = scaled()

    def both():
        program = export(module, (X,))
        before = dict(program.constants)
        edges = [lower(program, vgf()), lower(program, tosa())]
        assert program.constants.keys() == before.keys()
        assert all(program.constants[name] is before[name] for name in before)
        return edges

    for edge in fails_on_stock(both, KeyError, "b"):
        check(edge, module)


def test_edge_program_lowered_twice():
    module = scaled()

    def both():
        edge = to_edge(export(module, (X,)), compile_config=UNCHECKED)
        return [edge.to_backend(vgf()), edge.to_backend(tosa()), edge]

    for edge in fails_on_stock(both, Exception, "not in the constants"):
        check(edge, module)


def test_same_program_for_two_methods():
    module = scaled()
    program = export(module, (X,))
    edge = lower({"first": program, "second": program}, vgf())
    for method in ("first", "second"):
        check(edge, module, method=method)
    check(lower(program, tosa()), module)


# Tags in branches


def branches():
    return Call(
        lambda m, x: torch.cond(
            x.sum() > 0,
            lambda x: torch.atan2(x * 2.0, x + 1.0) * x,
            lambda x: torch.relu(x) - x,
            (x,),
        )
    )


@pytest.mark.parametrize("second", [vgf, tosa])
def test_second_partitioner_after_vgf_with_branches(second):
    module = branches()
    check(lower(module, vgf(), second()), module, (X,), (-X,))


def test_second_partitioner_finds_no_tags_in_branches():
    module = Call(
        lambda m, x: torch.cond(
            x.sum() > 0,
            lambda x: torch.atan2(x * 2.0, x + 1.0) - x,
            lambda x: torch.relu(x) - x,
            (x,),
        )
    )

    def lower_and_check():
        first = InterpretedPartitioner(by_op(mul=0, add=1))
        second = InterpretedPartitioner(by_op(atan2=0, sub=1, relu=2))
        edge = lower(module, first, second)
        check(edge, module, (X,), (-X,))
        assert delegates(edge) == 6

    fails_on_stock(lower_and_check, Exception, "")


def test_delegate_with_integer_output_before_a_second_vgf():
    module = Call(lambda m, x: (x * 2 > 0, torch.atan2(x, x + 1)))
    edge = fails_on_stock(lambda: lower(module, vgf(), vgf()), KeyError, "val")
    check(edge, module)


# Constants that several users share


def test_constant_shared_with_a_branch():
    module = Call(
        lambda m, x: (
            x * m.c,
            torch.cond(
                x.sum() > 0,
                lambda x, c: torch.atan2(x, c),
                lambda x, c: x - c,
                (x, m.c),
            ),
        ),
        c=CONSTANT,
    )
    edge = fails_on_stock(lambda: lower(module, vgf()), RuntimeError, "is tagged with")
    check(edge, module, (X,), (-X,))


def test_constant_shared_with_an_output():
    module = Call(lambda m, x: (x * m.c, m.c, torch.atan2(m.c, x)), c=CONSTANT)
    edge = fails_on_stock(lambda: lower(module, vgf()), RuntimeError, "is tagged with")
    check(edge, module)


@pytest.mark.parametrize("persistent", [True, False])
def test_constant_shared_with_a_list(persistent):
    module = Call(
        lambda m, x: (x * m.c, torch.cat([m.c, x, m.c]), m.c + x, torch.stack([m.c])),
        persistent,
        c=CONSTANT.expand(2, 4),
    )

    def run():
        return lower(module, InterpretedPartitioner(by_op(mul=0, add=1)))

    check(fails_on_stock(run, RuntimeError, "is tagged with"), module)


# Scalars and sizes


def test_integer_in_a_branch():
    module = Call(
        lambda m, x: torch.cond(
            x.sum() > 0, lambda x: x + 1, lambda x: torch.relu(x) * 2, (x,)
        )
    )
    edge = fails_on_stock(lambda: lower(module, vgf()), ValueError, "_tensor_constant0")
    check(edge, module, (X,), (-X,))


@pytest.mark.parametrize("shape", [(2, 4), (2, 3, 4)], ids=["addmm", "linear"])
def test_linear_with_a_dynamic_batch(shape):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
    x = torch.randn(shape)

    def run():
        dynamic = ({0: Dim("n", min=2, max=8)},)
        program = export(module, (x,), dynamic_shapes=dynamic)
        return lower(program, vgf())

    edge = fails_on_stock(run, Exception, "An error occurred when running")
    assert delegates(edge)
    # The reference model runs no graph with a dynamic size.
    check(
        edge, module, (x,), (torch.cat([x, x + 1]),), run_delegate=InterpretedDelegate
    )


def test_reshape_by_a_symbolic_size_with_the_shape_extension():
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
    spec = TosaCompileSpec("TOSA-1.1+FP+shape")

    def run():
        dynamic = ({0: Dim("n", min=2, max=8)},)
        program = export(module, (X,), dynamic_shapes=dynamic)
        return lower(program, TOSAPartitioner(spec))

    with arm_ext.patched(disable=WITHOUT):
        with pytest.raises(Exception) as caught:
            run()
        assert "no attribute 'node'" in str(caught.value.__cause__)
    assert delegates(run()) == 1


# Partitioners as documented


def test_partitioner_without_a_list():
    module = torch.nn.ReLU()

    def run():
        program = export(module, (X,))
        return [
            to_edge_transform_and_lower(program, partitioner=vgf()),
            to_edge_transform_and_lower(program, None, vgf()),
            to_edge_transform_and_lower(
                {"forward": program}, partitioner={"forward": vgf()}
            ),
        ]

    for edge in fails_on_stock(run, TypeError, "not iterable"):
        check(edge, module)


# What ExecuTorch does with partitions, on a backend that interprets them


def op_numbers(**numbers):
    """As ``by_op``, but a getitem stays outside."""
    choose = by_op(**numbers)
    return lambda node: None if node.target is operator.getitem else choose(node)


def test_op_with_several_outputs_tagged_without_its_getitems():
    def function(m, x):
        first, second = torch.split(x * 2, 2, -1)
        values, indices = torch.max(x, -1)
        return second - first, values, indices, torch.neg(first)

    def run():
        choose = op_numbers(split_with_sizes_copy=0, mul=1, max=2, neg=3)
        edge = lower(Call(function), InterpretedPartitioner(choose))
        check(edge, Call(function))

    fails_on_stock(run, Exception, "")


def test_partition_with_a_size_as_its_only_output():
    module = Call(lambda m, x: (x.reshape(x.shape[0] * 2, 2) + 1, x.shape[0]))

    def run():
        dynamic = (({0: Dim("n", min=2, max=8)},),)
        program = export(module, (X,), dynamic_shapes=dynamic)
        choose = by_op(**{"sym_size": 0, "add": 1})
        check(
            lower(program, InterpretedPartitioner(choose)),
            module,
            (X,),
            (torch.cat([X, X]),),
        )

    fails_on_stock(run, Exception, "")


def own_buffers(**numbers):
    return InterpretedPartitioner(by_op(**numbers), own_buffers=True)


def test_buffer_read_by_one_partition_and_written_by_another():
    def function(m, x):
        before = m.total * 2
        m.total.add_(x)
        return before

    def run():
        module = Call(function, total=torch.zeros(2, 4))
        edge = lower(module, own_buffers(mul=0, add=1))
        check(edge, module, (X,), (X + 1,), (X - 2,))

    fails_on_stock(run, AssertionError, "Tensor-likes are not close")


def test_buffer_written_by_one_partition_and_read_by_the_next():
    def function(m, x):
        m.total.add_(x)
        return torch.neg(m.total), m.total

    def run():
        module = Call(function, total=torch.zeros(2, 4))
        edge = lower(module, own_buffers(add=0, neg=1))
        check(edge, module, (X,), (X + 1,), (X - 2,))

    fails_on_stock(run, (AssertionError, RuntimeError), "")


def test_buffer_of_one_delegate_stays_in_it():
    def function(m, x):
        m.total.add_(x)
        return m.total + 1

    module = Call(function, total=torch.zeros(2, 4))
    edge = lower(module, own_buffers(add=0))
    assert not edge.exported_program().graph_signature.buffers_to_mutate
    check(edge, module, (X,), (X + 1,))


# The order of partitions


def chain(length):
    def function(m, x):
        for _ in range(length):
            x = torch.atan2(x * 2, x + 2)
        return x

    return Call(function)


def test_partitions_come_in_order():
    program = to_edge(export(chain(20), (X,))).exported_program()

    def tags():
        return list(vgf().partition(program).partition_tags)

    in_order = [f"tag{number}" for number in range(20)]
    with arm_ext.patched(disable=WITHOUT):
        assert set(tags()) == set(in_order) and tags() != in_order
    assert tags() == in_order


LOWER_AND_HASH = """
import hashlib
import arm_ext, test_multimethod as t
edges = [t.lower(t.several_shared(), t.vgf()), t.lower(t.chain(3), t.vgf())]
for edge in edges:
    print(hashlib.sha256(edge.to_executorch().buffer).hexdigest())
"""


def several_shared():
    """Four constants, each in several partitions and in several ops of one."""

    def function(m, x):
        y = torch.atan2(x * m.a + m.b, x * m.c - m.d) * m.a
        return torch.atan2(y + m.b, m.c) * m.d + m.a, torch.cat([y, m.b, m.c])

    rows = {name: (CONSTANT + i).expand(2, 4) for i, name in enumerate("abcd")}
    return Call(function, **rows)


def test_pte_does_not_depend_on_the_hash_seed():
    def hashes(seed):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.path.dirname(__file__),
        }
        return subprocess.run(
            [sys.executable, "-c", LOWER_AND_HASH],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    first, second = hashes("1"), hashes("2")
    assert len(first.split()) == 2 and first == second
