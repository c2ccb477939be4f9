# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""A remembered result is what the op would have returned, and a tensor of its own."""

import contextlib
import weakref
from functools import partial

import pytest
import torch
from arm_ext.lowering import fake_results
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


class Counter:
    """Calls an op through the memory, and counts how often it really ran."""

    def __init__(self):
        self.count = 0

    def __call__(self, op, *args, **kwargs):
        def run():
            self.count += 1
            return op(*args, **kwargs)

        return fake_results.call(op, args, kwargs, run)


@contextlib.contextmanager
def _fresh_mode():
    with unset_fake_temporarily(), FakeTensorMode() as mode:
        yield mode


@pytest.fixture
def call():
    with FakeTensorMode(), fake_results.remembered():
        yield Counter()


def layout(tensor):
    return (
        tensor.shape,
        tensor.stride(),
        tensor.dtype,
        tensor.device,
        tensor.requires_grad,
        tensor.fake_mode,
    )


@pytest.mark.parametrize("requires_grad", [False, True])
def test_second_call_is_made_from_the_first(call, requires_grad):
    def x():
        return torch.empty(2, 3, 4, 5, requires_grad=requires_grad).to(
            memory_format=torch.channels_last
        )

    first, second = call(aten.relu.default, x()), call(aten.relu.default, x())
    assert call.count == 1
    assert layout(first) == layout(second)
    assert first is not second
    assert first.untyped_storage()._cdata != second.untyped_storage()._cdata


def test_no_result_is_kept(call):
    """Torch hands out an alias of a new tensor that somebody else holds."""
    for _ in range(2):
        result = weakref.ref(call(aten.relu.default, torch.empty(2)))
        assert result() is None


def test_results_that_share_memory_with_an_argument_always_run(call):
    runs = []

    def run(tensor):
        runs.append(tensor)
        return tensor.view(2, 2)

    for _ in range(2):
        tensor = torch.empty(4)
        fake_results.call(aten.relu.default, (tensor,), {}, partial(run, tensor))
    assert len(runs) == 2


def test_several_outputs(call):
    x = torch.empty(4, 6)
    for _ in range(2):
        values, indices = call(aten.topk.default, x, 2)
    assert call.count == 1
    assert (values.dtype, indices.dtype) == (torch.float32, torch.int64)
    assert values.shape == indices.shape == (4, 2)


@pytest.mark.parametrize(
    "first, second",
    [
        ((aten.add.Tensor, "f", 1), (aten.add.Tensor, "f", 1.0)),
        ((aten.add.Tensor, "f", 1), (aten.add.Tensor, "f", True)),
        ((aten.add.Tensor, "f", 0.0), (aten.add.Tensor, "f", -0.0)),
        ((aten.add.Tensor, "f", 1), (aten.add.Tensor, "i", 1)),
        ((aten.add.Tensor, "f", 1), (aten.sub.Tensor, "f", 1)),
        ((aten.add.Tensor, "f", 1), (aten.add.Tensor, "t", 1)),
        ((aten.sum.dim_IntList, "f", [0]), (aten.sum.dim_IntList, "f", [0, 1])),
    ],
)
def test_different_calls_are_kept_apart(call, first, second):
    tensors = {
        "f": torch.empty(2, 3),
        "i": torch.empty(2, 3, dtype=torch.int32),
        "t": torch.empty(3, 2).t(),
    }
    for op, tensor, other in (first, second):
        call(op, tensors[tensor], other)
    assert call.count == 2


def test_keyword_arguments_count(call):
    x = torch.empty(2)
    results = [call(aten._to_copy.default, x, dtype=d) for d in (torch.int8, None)]
    assert [r.dtype for r in results] == [torch.int8, torch.float32]


def test_grad_mode_counts(call):
    x = torch.empty(2, requires_grad=True)
    with torch.no_grad():
        assert not call(aten.relu.default, x).requires_grad
    assert call(aten.relu.default, x).requires_grad


def test_autograd_counts(call):
    """The same arguments give another result above autograd than below it."""
    x, mode = torch.empty(2, requires_grad=True), torch.empty(0).fake_mode
    below = fake_results.call_in(
        mode, aten.relu.default, (x,), {}, lambda: torch.empty(2)
    )
    assert not below.requires_grad
    assert call(aten.relu.default, x).requires_grad


@pytest.mark.parametrize("op", [aten.relu_.default, aten.view.default])
def test_ops_that_write_or_alias_always_run(call, op):
    args = ([4],) if op is aten.view.default else ()
    for _ in range(2):
        call(op, torch.empty(4), *args)
    assert call.count == 2


def test_ops_without_a_tensor_belong_to_the_active_mode(call):
    first = call(aten.full.default, [2], 1.0)
    assert call(aten.full.default, [2], 1.0).fake_mode is first.fake_mode
    assert call.count == 1
    with _fresh_mode() as mode:
        assert call(aten.full.default, [2], 1.0).fake_mode is mode
    assert call.count == 2


def test_constants_always_run(call):
    constant, runs = torch.empty(2), []
    constant.constant = object()
    for _ in range(2):
        run = lambda: runs.append(None) or torch.empty(2)  # noqa: E731
        fake_results.call(aten.relu.default, (constant,), {}, run)
    assert len(runs) == 2


def test_symbolic_and_data_dependent_shapes_always_run():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    dynamic, call = mode.from_tensor(torch.ones(3, 2)), Counter()
    assert isinstance(dynamic.shape[0], torch.SymInt)
    with mode, fake_results.remembered():
        for _ in range(2):
            call(aten.relu.default, dynamic)
        sizes = [call(aten.nonzero.default, torch.empty(3)).shape[0] for _ in range(2)]
    assert call.count == 4
    assert str(sizes[0]) != str(sizes[1])


def test_a_mode_that_records_sees_every_call(call):
    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with Recorder():
        for _ in range(2):
            call(aten.relu.default, torch.empty(2))
    assert call.count == 2


def test_contexts_are_kept_apart_and_outer_results_are_shared(call):
    x = torch.empty(2)
    for context in ("TOSA-1.0+FP", "TOSA-1.0+INT", "TOSA-1.0+FP"):
        with fake_results.remembered(context):
            call(aten.relu.default, x)
    assert call.count == 2


def test_nothing_is_remembered_outside_of_a_block():
    call = Counter()
    with FakeTensorMode():
        for _ in range(2):
            call(aten.relu.default, torch.empty(2))
    assert call.count == 2
