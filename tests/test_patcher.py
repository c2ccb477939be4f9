# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Every verb of the patcher, and that undo leaves the identical objects."""

import inspect
import sys
import types

import pytest
from arm_ext.patcher import Patcher, SymbolMismatch

SOURCE = '''
def double(x):
    """Twice x."""
    return 2 * x


class Base:
    def inherited(self, x):
        return x


class Thing(Base):
    limit = 3

    def method(self, x, y=1):
        return x + y

    @staticmethod
    def static(x):
        return -x

    @classmethod
    def make(cls):
        return cls()


names = ["a"]
kinds = {"a"}
table = {"a": 1}
fixed = ("a",)
'''


@pytest.fixture
def library(monkeypatch):
    """A package to patch, and a module that copied a reference before."""
    module = types.ModuleType("patchee")
    exec(SOURCE, vars(module))
    importer = types.ModuleType("patchee_user")
    importer.double = module.double
    monkeypatch.setitem(sys.modules, "patchee", module)
    monkeypatch.setitem(sys.modules, "patchee_user", importer)
    return module


def plus_one(wrapped, instance, args, kwargs):
    return wrapped(*args, **kwargs) + 1


def snapshot(module):
    return {
        (owner.__name__, name): value
        for owner in (module, module.Thing, module.Base)
        for name, value in vars(owner).items()
        if not name.startswith("__")
    }


def assert_identical(module, before):
    after = snapshot(module)
    assert after.keys() == before.keys()
    assert all(after[key] is before[key] for key in before)


def test_wrap_function_keeps_signature_and_reaches_earlier_imports(library):
    before = snapshot(library)
    user = sys.modules["patchee_user"]
    patcher = Patcher()
    patcher.wrap("patchee:double", plus_one, parameters=("x",))
    assert library.double(3) == 7
    assert user.double(3) == 7
    assert library.double.__doc__ == "Twice x."
    assert list(inspect.signature(library.double).parameters) == ["x"]
    late = types.ModuleType("patchee_late")
    late.double = library.double
    sys.modules["patchee_late"] = late
    try:
        patcher.undo()
        assert_identical(library, before)
        assert user.double is late.double is before[("patchee", "double")]
    finally:
        del sys.modules["patchee_late"]


@pytest.mark.parametrize(
    "name, parameters, call, expected",
    [
        ("method", ("self", "x", "y"), lambda t: t.method(1), 3),
        ("static", ("x",), lambda t: t.static(1), 0),
        ("inherited", ("self", "x"), lambda t: t.inherited(1), 2),
    ],
)
def test_wrap_methods_of_every_kind(library, name, parameters, call, expected):
    before = snapshot(library)
    existing = library.Thing()
    patcher = Patcher()
    patcher.wrap(f"patchee:Thing.{name}", plus_one, parameters=parameters)
    assert call(existing) == expected
    assert patcher.symbols == (f"patchee:Thing.{name}",)
    patcher.undo()
    assert patcher.symbols == ()
    assert_identical(library, before)


def test_wrap_twice_undoes_in_reverse(library):
    before = snapshot(library)
    patcher = Patcher()
    for _ in range(2):
        patcher.wrap("patchee:double", plus_one, parameters=("x",))
    assert library.double(1) == 4
    patcher.undo()
    assert_identical(library, before)


def test_set_attribute_and_undo(library):
    patcher = Patcher()
    patcher.set("patchee:Thing.limit", 5)
    assert library.Thing.limit == 5
    patcher.undo()
    assert library.Thing.limit == 3


def test_extend_adds_and_removes_only_its_own(library):
    patcher = Patcher()
    patcher.extend("patchee:names", ["a", "b"])
    patcher.extend("patchee:kinds", ["a", "b"])
    patcher.extend("patchee:table", {"b": 2})
    assert library.names == ["a", "b"]
    assert library.kinds == {"a", "b"}
    assert library.table == {"a": 1, "b": 2}
    library.table["c"] = 3
    patcher.undo()
    assert library.names == ["a"]
    assert library.kinds == {"a"}
    assert library.table == {"a": 1, "c": 3}


def test_register_calls_both_sides_once():
    calls = []
    patcher = Patcher()
    patcher.register("thing", lambda: calls.append("do"), lambda: calls.append("undo"))
    patcher.undo()
    patcher.undo()
    assert calls == ["do", "undo"]


@pytest.mark.parametrize(
    "act, words",
    [
        (lambda p: p.set("no_such_module:x", 1), "no_such_module cannot be imported"),
        (lambda p: p.set("patchee:gone", 1), "patchee:gone does not exist"),
        (lambda p: p.set("patchee:Gone.x", 1), "no 'Gone' in"),
        (
            lambda p: p.wrap("patchee:double", plus_one, parameters=("y",)),
            r"patchee:double takes \(x\), expected \(y\)",
        ),
        (
            lambda p: p.wrap("patchee:names", plus_one, parameters=()),
            "patchee:names is not callable",
        ),
        (lambda p: p.extend("patchee:fixed", ["b"]), "is a tuple, expected list"),
        (lambda p: p.extend("patchee:table", {"a": 2}), r"already has \['a'\]"),
    ],
)
def test_mismatch_names_symbol_and_difference_and_changes_nothing(library, act, words):
    before = snapshot(library)
    patcher = Patcher()
    with pytest.raises(SymbolMismatch, match=words):
        act(patcher)
    assert patcher.symbols == ()
    assert_identical(library, before)


def test_undo_says_when_somebody_patched_over_it(library):
    before = snapshot(library)
    patcher = Patcher()
    patcher.wrap("patchee:double", plus_one, parameters=("x",))
    library.double = lambda x: x
    with pytest.warns(UserWarning, match="patchee:double was changed again"):
        patcher.undo()
    assert_identical(library, before)


def test_set_in_one_module_only(library):
    stock = library.double
    user = sys.modules["patchee_user"]
    patcher = Patcher()
    patcher.set("patchee_user:double", "ours", everywhere=False)
    assert user.double == "ours" and library.double is stock
    patcher.undo()
    assert user.double is stock


def test_set_leaves_equal_constants_alone(library, monkeypatch):
    other = types.ModuleType("patchee_other")
    other.names, other.shared = library.names, "ours"
    monkeypatch.setitem(sys.modules, "patchee_other", other)
    before = snapshot(library)
    patcher = Patcher()
    patcher.set("patchee:names", "ours")
    patcher.set("patchee:double", "ours")
    assert other.names is before[("patchee", "names")]
    patcher.undo()
    assert other.shared == "ours"
    assert_identical(library, before)
