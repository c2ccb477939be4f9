# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Modules with guards are quantized, keep the guards and lower as without."""

import copy

import arm_ext
import pytest
import torch
from arm_ext import verify
from arm_ext.coverage import coverage
from arm_ext.fix import State
from arm_ext.quantizer.guards import guards_node
from arm_ext.targets import lower, TARGETS
from executorch.backends.arm.ethosu import EthosUCompileSpec
from executorch.backends.arm.quantizer import (
    EthosUQuantizer,
    get_symmetric_quantization_config,
)
from torch.export import _unlift, Dim, export
from torchao.quantization.pt2e.quantize_pt2e import (
    convert_pt2e,
    prepare_pt2e,
    prepare_qat_pt2e,
)

OURS = ("guards-module", "annotation-symint")


class Head(torch.nn.Module):
    """Ends in an op that the annotation pipeline rewrites."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return torch.relu(self.conv(x)).mean((2, 3))


class Nested(torch.nn.Module):
    def forward(self, pair, *, scale):
        first, (second,) = pair["first"], pair["rest"]
        return {"mean": (first * scale + second).mean(-1), "sum": first + second}


class Branch(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, torch.relu, torch.neg, (x.mean(-1),))


class Lookup(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(16, 8)

    def forward(self, index):
        return self.table(index).mean(-1)


def seeded(make):
    torch.manual_seed(0)
    return make().eval()


IMAGE = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def guarded(monkeypatch):
    """Export a model and return its module, with guards for certain.

    torch leaves the guards out when the file name of any caller, this checkout
    or the environment included, contains "executorch" or "torchao". Users'
    callers are rarely called that, so the export here does without the rule.
    The quantizer needs it: torchao exports its patterns to match without guards.

    """

    def make(model, args, kwargs=None, **options):
        with monkeypatch.context() as patch:
            patch.setattr(_unlift, "_ok_to_generate_guards_fn", lambda: True)
            module = export(model, args, kwargs, **options).module()
        assert guards_node(module) is not None
        return module

    return make


def unguarded(model, args, kwargs=None, **options):
    return export(model, args, kwargs, **options).module(check_guards=False)


def quantizer(composable=True, is_qat=False):
    made = EthosUQuantizer(EthosUCompileSpec("ethos-u85-256"), composable)
    made.set_global(get_symmetric_quantization_config(is_qat=is_qat))
    return made


def quantize(module, args, kwargs=None, composable=True, is_qat=False, by=None):
    prepare = prepare_qat_pt2e if is_qat else prepare_pt2e
    prepared = prepare(module, by or quantizer(composable, is_qat))
    prepared(*args, **(kwargs or {}))
    return convert_pt2e(prepared)


def causes(error):
    while error is not None:
        yield str(error)
        error = error.__cause__


@pytest.mark.parametrize("is_qat", (False, True), ids=("ptq", "qat"))
@pytest.mark.parametrize("composable", (True, False), ids=("composable", "legacy"))
def test_stock_fails_and_patched_quantizes_as_without_guards(
    guarded, composable, is_qat
):
    def run(make):
        module = make(seeded(Head), (IMAGE,))
        return quantize(module, (IMAGE,), composable=composable, is_qat=is_qat)

    with arm_ext.patched(only=()), pytest.raises(Exception) as error:
        run(guarded)
    assert any("call_module is not supported" in text for text in causes(error.value))

    with arm_ext.patched(only=OURS):
        with_guards, without = run(guarded), run(unguarded)
    assert guards_node(with_guards) is not None
    assert torch.equal(with_guards(IMAGE), without(IMAGE))
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] == 2"):
        with_guards(IMAGE[:1])


def test_revert_brings_the_stock_failure_back(guarded):
    with arm_ext.patched(only=OURS):
        quantize(guarded(seeded(Head), (IMAGE,)), (IMAGE,))
    with arm_ext.patched(only=()), pytest.raises(Exception) as error:
        quantize(guarded(seeded(Head), (IMAGE,)), (IMAGE,))
    assert any("call_module is not supported" in text for text in causes(error.value))


def test_a_module_that_stock_can_quantize_comes_out_the_same(guarded):
    def program():
        model = seeded(lambda: torch.nn.Conv2d(3, 4, 3))
        return quantize(guarded(model, (IMAGE,)), (IMAGE,))

    with arm_ext.patched(only=()):
        stock = program()
    with arm_ext.patched(only=OURS):
        patched = program()
    # Only the number that fx adds to the name of the guards node may differ.
    texts = [str(program.graph) for program in (stock, patched)]
    first, second = (text.replace("_guards_fn_1", "_guards_fn") for text in texts)
    assert first == second


@pytest.mark.parametrize("composable", (True, False), ids=("composable", "legacy"))
def test_nested_inputs_and_keyword_arguments(guarded, composable):
    first, second, scale = (torch.randn(4, 6) for _ in range(3))
    args, kwargs = ({"first": first, "rest": [second]},), {"scale": scale}
    with arm_ext.patched(only=OURS):
        converted = quantize(
            guarded(Nested(), args, kwargs), args, kwargs, composable=composable
        )
        without = quantize(
            unguarded(Nested(), args, kwargs), args, kwargs, composable=composable
        )
    got, want = converted(*args, **kwargs), without(*args, **kwargs)
    assert got.keys() == want.keys()
    assert all(torch.equal(got[key], want[key]) for key in want)
    with pytest.raises(AssertionError, match=r"pair\['rest'\]\[0\]"):
        converted({"first": first, "rest": [second[:2]]}, scale=scale)
    with pytest.raises(AssertionError, match="scale"):
        converted(*args, scale=scale[:2])


@pytest.mark.parametrize("composable", (True, False), ids=("composable", "legacy"))
@pytest.mark.parametrize("with_submodules", (True, False))
def test_control_flow(guarded, composable, with_submodules):
    def run(make):
        module = make(Branch(), (x,))
        made = quantizer(composable)
        if with_submodules:
            return made._quantize_with_submodules(module, [(x,), (-x,)])
        return quantize(module, (x,), by=made)

    x = torch.rand(4, 6) + 0.5
    with arm_ext.patched(only=OURS):
        converted, without = run(guarded), run(unguarded)
    for value in (x, -x):
        assert torch.equal(converted(value), without(value))
    with pytest.raises(AssertionError, match="Guard failed"):
        converted(x[:3])


def test_guards_check_the_inputs_and_not_what_the_pipeline_made_of_them(guarded):
    index = torch.randint(16, (3, 4))
    model = seeded(Lookup)
    with arm_ext.patched(only=OURS):
        # The pipeline puts a cast to int32 after an int64 input.
        prepared = prepare_pt2e(guarded(model, (index,)), quantizer())
    (checked,) = guards_node(prepared).all_input_nodes
    assert checked.op == "placeholder"
    prepared(index)
    with pytest.raises(AssertionError, match="Guard failed"):
        convert_pt2e(prepared)(index[:1])


def test_dynamic_batch_keeps_its_range(guarded):
    x = torch.randn(4, 3, 8, 8)
    shapes = ({0: Dim("batch", min=3, max=16)},)
    with arm_ext.patched(only=OURS):
        module = guarded(seeded(Head), (x,), dynamic_shapes=shapes)
        converted = quantize(module, (x,))
    assert converted(torch.randn(16, 3, 8, 8)).shape == (16, 8)
    for batch in (2, 17):
        with pytest.raises(AssertionError, match="Guard failed"):
            converted(torch.randn(batch, 3, 8, 8))


def test_a_converted_module_can_be_prepared_again(guarded):
    with arm_ext.patched(only=OURS):
        half = quantizer()
        half.set_global(None)
        half.set_module_type(
            torch.nn.Conv2d, get_symmetric_quantization_config(is_qat=False)
        )
        once = quantize(guarded(seeded(Head), (IMAGE,)), (IMAGE,), by=half)
        assert guards_node(once) is not None
        twice = quantize(copy.deepcopy(once), (IMAGE,))
    assert twice(IMAGE).shape == (2, 8)
    with pytest.raises(AssertionError, match="Guard failed"):
        twice(IMAGE[:1])


@pytest.mark.parametrize("target", ("vgf", "vgf-int", "ethos-u85-256"))
def test_lowers_to_the_program_of_the_unguarded_module(guarded, target):
    x = IMAGE[:1]
    by = TARGETS[target].quantizer
    with arm_ext.patched(only=OURS):
        converted = quantize(guarded(seeded(Head), (x,)), (x,), by=by("int8"))
        without = quantize(unguarded(seeded(Head), (x,)), (x,), by=by("int8"))
        edge = lower(converted, (x,), TARGETS[target])
        reference = lower(without, (x,), TARGETS[target])
    assert coverage(edge).delegates == 1
    assert coverage(edge).compute_ops == ()
    want = converted(x)
    step = (want.max() - want.min()) / 255  # of the int8 output, calibrated on x
    assert (verify.run(edge, x) - want).abs().max() <= 1.5 * step
    assert edge.to_executorch().buffer == reference.to_executorch().buffer


@pytest.mark.parametrize("target", ("vgf", "ethos-u85-256"))
def test_programs_without_guards_are_byte_identical(target):
    def pte():
        x, by = IMAGE[:1], TARGETS[target].quantizer("int8")
        model = quantize(unguarded(seeded(Head), (x,)), (x,), by=by)
        return lower(model, (x,), TARGETS[target]).to_executorch().buffer

    with arm_ext.patched(only=()):
        stock = pte()
    with arm_ext.patched(only=OURS):
        assert pte() == stock


def test_is_skipped_when_the_pipeline_has_another_name(monkeypatch):
    from executorch.backends.arm._passes import ArmPassManager

    with arm_ext.patched(only=()):
        monkeypatch.delattr(ArmPassManager, "transform_for_annotation_pipeline")
        with arm_ext.patched(only=OURS) as status:
            rows = {row.fix: row for row in status if row.fix in OURS}
        monkeypatch.undo()
    for row in rows.values():
        assert row.state is State.SKIPPED
        assert "transform_for_annotation_pipeline" in row.reason


def test_is_not_applied_over_a_pipeline_that_keeps_guards():
    from arm_ext.fixes import guards_module

    with arm_ext.patched(only=()):
        assert guards_module.needs(None).state is State.APPLIED
    with arm_ext.patched(only=OURS):
        assert guards_module.needs(None).state is State.UPSTREAM
