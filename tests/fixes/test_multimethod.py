# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What was lowered, twice or in several methods, is what eager gives."""

import contextlib
import dataclasses
import io
import operator
import os
import random
import subprocess
import sys

import arm_ext
import pytest
import torch
from arm_ext.targets import quantize, TARGETS
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge, to_edge_transform_and_lower
from interpreted import by_op, executable, InterpretedDelegate, InterpretedPartitioner
from torch.export import Dim, export
from torch.utils._pytree import tree_leaves

# What goes on where stock raises would hide what it raises.
WITHOUT = ["multimethod", "lowering-fallback"]
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


def check(edge, module, *calls, **options):
    """Compare with eager, and make the ``.pte``."""
    compare(edge, module, *calls, **options)
    assert edge.to_executorch().buffer


def compare(edge, module, *calls, method="forward", run_delegate=None):
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


# Methods without inputs


def test_method_of_constants_alone():
    def function(m):
        return torch.atan2(m.c * 2, m.c + 1), m.c * 3

    modules = {"table": Call(function, c=CONSTANT), "forward": scaled()}

    def run():
        return lower(
            {
                "table": export(modules["table"], ()),
                "forward": export(modules["forward"], (X,)),
            },
            vgf(),
        )

    edge = fails_on_stock(run, Exception, "does not match node name")
    assert delegates(edge, "table")
    compare(edge, modules["forward"], method="forward")
    check(edge, modules["table"], (), method="table")


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


# Every method of a program, compared with eager


def rotary(m, x):
    """Two shards that share the sine and cosine of the positions."""
    angle = x * m.frequency
    sine, cosine = torch.sin(angle), torch.cos(angle)
    first = torch.atan2(x * cosine, x + sine)
    second = torch.atan2(first * sine - cosine, first + cosine)
    return second * cosine + first * sine, sine


def rotary_module():
    return Call(rotary, frequency=CONSTANT)


def many_inputs_swapped(m, x):
    """Thirteen values that a later partition takes in another order."""
    values = [x * (i + 1.0) for i in range(13)]
    late = torch.atan2(x, x + 2)
    result = late + values[12]
    for i in (10, 1, 11, 0, 9, 2, 3, 8, 4, 7, 5, 6):
        result = result - values[i] / (i + 2.0)
    return result, values[1], values[10]


class Colliding(torch.nn.Module):
    """Inputs that are named as ExecuTorch names the outputs of delegates."""

    def forward(self, getitem_1, getitem_10, getitem, aten_mul_tensor):
        low, high = torch.split(getitem_10 * 2.0, 2, -1)
        mixed = torch.atan2(getitem_1 - low.repeat(1, 2), getitem + 2.0)
        other = torch.atan2(high.repeat(1, 2), mixed - aten_mul_tensor)
        return other * getitem_1 - getitem, getitem_10 - low.repeat(1, 2), mixed


def same_tensor_twice(m, x):
    y = x * 2.0
    z = torch.atan2(y, y)
    return y - y * y, torch.cat([y, z, y]), z, z, y + 0.5


def input_as_output(m, x):
    return x, torch.atan2(x + 1.0, x), x


def without_inputs(m, x):
    full = torch.ones(2, 4) * 3.0
    return full + m.c, torch.atan2(x, m.c * m.c) - full, full


def nested_branches(m, x):
    def inner(x):
        return torch.cond(
            x.max() > 1.5, lambda x: torch.atan2(x * 3.0, x), torch.relu, (x,)
        )

    y = torch.cond(x.sum() > 0, lambda x: inner(x * 2.0) - x, torch.neg, (x,))
    return torch.atan2(y + 1.0, x) * y


MODULES = {
    "rotary": rotary_module,
    "many-inputs": lambda: Call(many_inputs_swapped),
    "same-tensor": lambda: Call(same_tensor_twice),
    "input-as-output": lambda: Call(input_as_output),
    "without-inputs": lambda: Call(without_inputs, c=CONSTANT),
    "nested-branches": lambda: Call(nested_branches),
}


@pytest.mark.parametrize("name", MODULES)
def test_program_of_several_partitions(name):
    module = MODULES[name]()
    edge = lower(module, vgf())
    assert delegates(edge)
    check(edge, module, (X,), (-X,), (X * 3,))


def test_names_that_collide():
    module = Colliding()
    inputs = tuple(X * (i + 1) + i for i in range(4))
    edge = lower(export(module, inputs), vgf())
    check(edge, module, inputs, tuple(reversed(inputs)))


def exported(**modules):
    return {name: export(module, (X,)) for name, module in modules.items()}


def test_three_methods_with_one_partitioner():
    modules = {
        "encode": rotary_module(),
        "decode": Call(same_tensor_twice),
        "forward": branches(),
    }
    edge = lower(exported(**modules), vgf())
    for method, module in modules.items():
        check(edge, module, (X,), (-X,), method=method)


def test_another_partitioner_for_each_method():
    torch.manual_seed(0)
    conv = torch.nn.Conv2d(4, 4, 1).eval()
    image = torch.linspace(-1, 1, 64).reshape(1, 4, 4, 4)
    quantized = quantize(conv, (image,), TARGETS["ethos-u85-256"])
    modules = {
        "vgf": rotary_module(),
        "tosa": rotary_module(),
        "interpreted": Call(many_inputs_swapped),
        "cpu": Call(same_tensor_twice),
    }
    programs = {**exported(**modules), "npu": export(quantized, (image,))}
    partitioners = {
        "vgf": [vgf()],
        "tosa": [tosa()],
        "npu": [ethosu()],
        "interpreted": [InterpretedPartitioner(by_op(atan2=0, div=1, sub=2))],
    }
    with contextlib.redirect_stdout(io.StringIO()):  # Vela prints a summary
        edge = to_edge_transform_and_lower(
            programs, partitioner=partitioners, compile_config=UNCHECKED
        )
    for method, module in modules.items():
        check(edge, module, method=method)
    check(edge, quantized, (image,), method="npu")
    assert delegates(edge, "npu") == 1 and delegates(edge, "cpu") == 0


def test_partitioners_one_after_the_other():
    module = rotary_module()
    rest = InterpretedPartitioner(by_op(atan2=0))
    edge = lower(exported(first=module, second=module), vgf(), tosa(), ethosu())
    for method in ("first", "second"):
        check(edge, module, method=method)
    with pytest.raises(AssertionError, match="cycles"):
        lower(module, vgf(), rest)


def test_constants_and_buffers_that_methods_share():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2, 4))
            self.weight = torch.nn.Parameter(CONSTANT.clone(), requires_grad=False)

        def forward(self, x):
            self.total.add_(x * self.weight)
            return torch.atan2(self.total, self.weight + 1.0) * self.weight

    class Reader(torch.nn.Module):
        def __init__(self, counter):
            super().__init__()
            self.counter = counter

        def forward(self, x):
            return torch.atan2(x * self.counter.weight, x) + self.counter.total

    counter = Counter()
    reader = Reader(counter)
    edge = lower(exported(count=counter, read=reader), vgf())
    compare(edge, reader, method="read")
    compare(edge, counter, (X,), (X + 1,), (X - 2,), method="count")
    assert edge.to_executorch().buffer  # last: it changes the edge programs


def test_what_two_methods_store_once():
    class Offset(torch.nn.Module):
        def __init__(self, layer, offset):
            super().__init__()
            self.layer, self.offset = layer, offset

        def forward(self, x):
            return self.layer(x) + self.offset

    def size(*modules):
        methods = {f"m{i}": export(m, (x,)) for i, m in enumerate(modules)}
        return len(lower(methods, vgf()).to_executorch().buffer)

    layer, x = torch.nn.Linear(64, 64), torch.randn(1, 64)
    weights = layer.weight.nbytes
    one, same, other = Offset(layer, 1), Offset(layer, 1), Offset(layer, 2)
    alone = size(one)
    assert alone > weights
    assert size(one, same) < alone + weights / 4  # equal delegates
    assert size(one, other) > alone + weights  # each holds its weights


def test_loop_with_a_partition_after_it():
    def function(m, x):
        def body(i, y):
            return i + 1, torch.atan2(y * 2.0, y + 3.0)

        start = torch.zeros((), dtype=torch.int64)
        _, y = torch.while_loop(lambda i, y: i < 3, body, (start, x * 1.5))
        return y * x

    module = Call(function)
    edge = lower(module, vgf())
    assert delegates(edge) == 2
    compare(edge, module, (X,), (-X,))  # ExecuTorch emits no while_loop


def test_dynamic_shapes_in_several_partitions():
    module = Call(
        lambda m, x: torch.cat([torch.atan2(x * 2.0, x) * m.c, x - m.c]), c=CONSTANT
    )
    program = export(module, (X,), dynamic_shapes=(({0: Dim("n", min=2, max=8)},),))
    edge = lower(program, vgf())
    assert delegates(edge) > 1
    longer = torch.cat([X, X + 1])
    check(edge, module, (X,), (longer,), run_delegate=InterpretedDelegate)


def random_function(seed):
    """Thirty ops on values picked at random, some of several outputs."""

    def function(m, x):
        choose = random.Random(seed)
        values = [x, m.c, x + m.c]
        for _ in range(30):
            a, b = choose.choices(values[-8:], k=2)
            op = choose.randrange(6)
            if op == 0:
                values.extend(torch.split(torch.cat([a, b, a]), 2))
            else:
                pairs = (torch.add, torch.sub, torch.mul, torch.minimum, torch.maximum)
                values.append(pairs[op - 1](a, torch.tanh(b)))
        return [choose.choice(values) for _ in range(3)] + [x, values[-1]]

    return Call(function, c=CONSTANT.expand(2, 4))


def in_segments(length):
    """Number the ops in turn; every third stretch of them stays on the CPU."""
    positions = {}

    def choose(node):
        if node.target is operator.getitem:
            return choose(node.args[0])
        segment = positions.setdefault(node.name, len(positions)) // length
        return None if segment % 3 == 2 else segment

    return choose


@pytest.mark.parametrize("seed", range(4))
def test_random_program(seed):
    module = random_function(seed)
    partitioner = InterpretedPartitioner(in_segments(3 + seed))
    edge = lower(exported(first=module, second=module), partitioner)
    for method in ("first", "second"):
        assert delegates(edge, method) > 3
        compare(edge, module, (X,), (-X,), method=method)
    assert edge.to_executorch().buffer


# Programs that need no mending


@pytest.mark.parametrize("name", ["rotary", "same-tensor", "nested-branches"])
def test_untouched_program_is_the_same_pte(name, monkeypatch):
    """Stock takes the partitions in any order; it is given the one they come in."""
    with arm_ext.patched(disable=WITHOUT):
        stock = TOSAPartitioner.partition

    def partition(*args):
        result = stock(*args)
        tags = sorted(result.partition_tags.items(), key=lambda item: int(item[0][3:]))
        return dataclasses.replace(result, partition_tags=dict(tags))

    def pte():
        return lower(MODULES[name](), vgf()).to_executorch().buffer

    wanted = pte()
    with arm_ext.patched(disable=WITHOUT), monkeypatch.context() as context:
        context.setattr(TOSAPartitioner, "partition", partition)
        assert pte() == wanted


def test_program_of_one_partition_is_the_same_pte():
    def pte():
        return lower(Call(lambda m, x: x * m.c + 1, c=CONSTANT), vgf()).to_executorch()

    with arm_ext.patched(disable=WITHOUT):
        stock = pte()
    assert pte().buffer == stock.buffer
