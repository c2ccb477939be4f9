# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Code that is generated on demand is the code that a recompile would have generated."""

import copy
import inspect
import pickle

import pytest
import torch
from arm_ext.lowering import deferred_code
from torch.fx import GraphModule, symbolic_trace


class Doubled(torch.nn.Module):
    def forward(self, x):
        return x + x


@pytest.fixture
def module(monkeypatch):
    """A module that was recompiled while deferred; the patch is still in place."""
    stock = GraphModule.recompile

    def recompile(self):
        return deferred_code.recompile(self, lambda: stock(self))

    monkeypatch.setattr(GraphModule, "recompile", recompile)
    with deferred_code.deferred():
        yield symbolic_trace(Doubled())


def pending(module):
    return "forward" in vars(type(module)) and not inspect.isfunction(
        vars(type(module))["forward"]
    )


def test_nothing_is_generated_until_it_is_wanted(module):
    assert pending(module)
    assert module(torch.ones(1)).item() == 2
    assert not pending(module)


@pytest.mark.parametrize(
    "look",
    [
        lambda m: m.code,
        lambda m: m.forward,
        lambda m: type(m).forward,
        lambda m: m._lineno_map,
        lambda m: str(m),
        lambda m: m.recompile().src,
        deferred_code.generate_now,
    ],
)
def test_looking_generates(module, look):
    look(module)
    assert "return" in module.code and not pending(module)


def test_code_is_that_of_a_recompile(module):
    deferred = module.code, module._lineno_map, inspect.signature(module.forward)
    stock = symbolic_trace(Doubled())
    deferred_code.generate_now(stock)
    assert deferred == (stock.code, stock._lineno_map, inspect.signature(stock.forward))


def test_code_follows_the_last_recompile(module):
    assert module(torch.ones(1)).item() == 2
    (add,) = [n for n in module.graph.nodes if n.op == "call_function"]
    add.args = (add.args[0], 5)
    module.recompile()
    assert pending(module)
    assert "+ 5" in module.code
    assert module(torch.ones(1)).item() == 6


def test_recompile_outside_of_the_block_is_at_once(module):
    token = deferred_code._deferring.set(False)
    try:
        module.recompile()
        assert not pending(module)
    finally:
        deferred_code._deferring.reset(token)


def test_pending_module_survives_the_block_and_the_patch(module, monkeypatch):
    monkeypatch.undo()
    assert module(torch.ones(1)).item() == 2
    module.recompile()
    assert module(torch.ones(1)).item() == 2


def test_stock_recompile_of_a_pending_module(module, monkeypatch):
    monkeypatch.undo()
    assert "return" in module.recompile().src
    assert not pending(module)


def test_copies_and_pickles(module):
    for other in (
        copy.copy(module),
        copy.deepcopy(module),
        pickle.loads(pickle.dumps(module)),
    ):
        assert other(torch.ones(1)).item() == 2


def test_hooks_run_once(module):
    calls = []
    module.register_forward_pre_hook(lambda *_: calls.append("before"))
    module.register_forward_hook(lambda *_: calls.append("after"))
    module(torch.ones(1))
    assert calls == ["before", "after"]


def test_submodules_are_pending_too(module):
    outer = GraphModule({"inner": module}, symbolic_trace(Doubled()).graph)
    outer.add_module("inner", module)
    deferred_code.generate_now(module)
    outer.recompile()
    assert pending(module)


def test_forward_that_somebody_sets_stays(module):
    module.forward = lambda x: x * 10
    assert module(torch.ones(1)).item() == 10


def test_class_with_its_own_recompile_is_left_alone(module):
    class Eager(GraphModule):
        def recompile(self):
            return super().recompile()

    eager = Eager(torch.nn.Module(), module.graph)
    assert not pending(eager)
    assert eager(torch.ones(1)).item() == 2


def test_other_threads_are_not_deferred(module):
    import threading

    seen = []
    thread = threading.Thread(
        target=lambda: seen.append(pending(symbolic_trace(Doubled())))
    )
    thread.start()
    thread.join()
    assert seen == [False]
