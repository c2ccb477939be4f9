# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Guards leave a graph and come back where and as they were."""

import pytest
import torch
from arm_ext.quantizer.guards import (
    attach_guards,
    detach_guards,
    Guards,
    guards_node,
    transform_without_guards,
)
from torch.export._unlift import GuardsFn


def guarded():
    """A module whose guards want a first input of two elements."""

    def forward(first, second):
        return first + second

    def check(*args):
        torch._assert(args[0].numel() == 2, "Guard failed")

    module = torch.fx.symbolic_trace(forward)
    guards = GuardsFn()
    guards.forward, guards._is_impure = check, True
    attach_guards(module, Guards("_guards_fn", guards, {"nn_module_stack": None}))
    return module


TWO, THREE = torch.ones(2), torch.ones(3)


def test_detach_and_attach_give_the_same_code():
    module = guarded()
    code = module.code.replace("_guards_fn_1", "_guards_fn")  # fx numbers names
    guards = detach_guards(module)
    assert guards_node(module) is None
    assert not hasattr(module, "_guards_fn")
    assert torch.equal(module(THREE, THREE), THREE + THREE)
    attach_guards(module, guards)
    assert module.code.replace("_guards_fn_1", "_guards_fn") == code
    assert guards_node(module).meta == {"nn_module_stack": None}
    module.graph.lint()
    with pytest.raises(AssertionError, match="Guard failed"):
        module(THREE, THREE)


def test_a_module_without_guards_is_not_touched():
    module = guarded()
    detach_guards(module)
    code = module.code
    assert detach_guards(module) is None
    assert transform_without_guards(lambda given: given, module) is module
    assert module.code == code


def test_a_new_module_gets_the_guards_and_the_old_one_keeps_them():
    module = guarded()

    def retrace(given):
        assert guards_node(given) is None
        return torch.fx.symbolic_trace(given)

    result = transform_without_guards(retrace, module)
    assert result is not module
    for checked in (result, module):
        assert torch.equal(checked(TWO, TWO), TWO + TWO)
        with pytest.raises(AssertionError, match="Guard failed"):
            checked(THREE, THREE)


def test_a_transformation_in_place_leaves_one_guards_node():
    module = guarded()
    assert transform_without_guards(lambda given: given, module) is module
    assert len(module.graph.find_nodes(op="call_module", target="_guards_fn")) == 1


def test_the_guards_are_back_when_the_transformation_raises():
    def fail(given):
        raise RuntimeError("no")

    module = guarded()
    with pytest.raises(RuntimeError, match="no"):
        transform_without_guards(fail, module)
    with pytest.raises(AssertionError, match="Guard failed"):
        module(THREE, THREE)


def test_another_module_of_that_name_is_not_taken_for_guards():
    module = torch.nn.Sequential()
    module.add_module("_guards_fn", torch.nn.ReLU())
    traced = torch.fx.symbolic_trace(module)
    assert guards_node(traced) is None
    assert detach_guards(traced) is None
