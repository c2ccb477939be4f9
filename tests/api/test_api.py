# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The public API is as declared, and a change that breaks callers is named."""

import arm_ext
import pytest
from arm_ext.api import compare, manifest, surface
from arm_ext.api.manifest import Entry, Lifecycle
from arm_ext.cli import api, main

OLD = {
    "pkg.f": "def f(a: int, b: int = 0) -> int: ...",
    "pkg.Kind": "class Kind(Enum): ...",
    "pkg.Kind.ONE": "ONE = 'one'",
    "pkg.Kind.TWO": "TWO = 'two'",
    "pkg.Box": "class Box: ...",
    "pkg.Box.size": "size: int",
    "pkg.Box.__init__": "def __init__(self, size: int) -> None: ...",
    "pkg.sub.g": "def g(*args: int, **kwargs: int) -> None: ...",
}


def changed(new, lifecycle=Lifecycle.STABLE):
    """Return what breaks when entries of ``OLD`` are replaced, or left out (None)."""
    before = {k: Entry(v, lifecycle) for k, v in OLD.items()}
    after = {k: Entry(v) for k, v in {**OLD, **new}.items() if v is not None}
    return compare.breaking(before, after)


@pytest.mark.parametrize(
    ("new", "name", "kind"),
    [
        ({"pkg.f": None}, "pkg.f", "removed"),
        ({"pkg.f": "def f(a: int) -> int: ..."}, "pkg.f", "signature narrowed"),
        (
            {"pkg.f": "def f(a: int, b: int) -> int: ..."},
            "pkg.f",
            "signature narrowed",
        ),
        (
            {"pkg.f": "def f(a: int, b: int = 0, *, c) -> int: ..."},
            "pkg.f",
            "signature narrowed",
        ),
        (
            {"pkg.f": "def f(a: int, *, b: int = 0) -> int: ..."},
            "pkg.f",
            "signature narrowed",
        ),
        (
            {"pkg.f": "def f(a: int, b: int = 1) -> int: ..."},
            "pkg.f",
            "default changed",
        ),
        ({"pkg.Kind.TWO": None}, "pkg.Kind.TWO", "removed"),
        ({"pkg.Kind.TWO": "TWO = '2'"}, "pkg.Kind.TWO", "attribute changed"),
        ({"pkg.Kind": "class Kind: ..."}, "pkg.Kind", "base removed"),
        (
            {"pkg.Box.__init__": "def __init__(self) -> None: ..."},
            "pkg.Box.__init__",
            "signature narrowed",
        ),
        ({"pkg.Box.size": "size: str"}, "pkg.Box.size", "attribute changed"),
        ({"pkg.Box.size": None}, "pkg.Box.size", "removed"),
        (
            {"pkg.sub.g": None, "pkg.other.g": OLD["pkg.sub.g"]},
            "pkg.sub.g",
            "moved",
        ),
    ],
)
def test_breaking_change_is_named_with_its_kind(new, name, kind):
    (change,) = changed(new)
    assert (change.name, change.kind) == (name, kind)
    assert change.compatible in str(change)


@pytest.mark.parametrize(
    "new",
    [
        {},
        {"pkg.new": "def new() -> None: ..."},
        {"pkg.f": "def f(a: int, b: int = 0, c: int = 0) -> int: ..."},
        {"pkg.f": "def f(a: int, b: int = 0, **kwargs: int) -> int: ..."},
        {"pkg.Kind.THREE": "THREE = 'three'"},
    ],
)
def test_compatible_change_is_let_through(new):
    assert changed(new) == []


def test_experimental_promises_nothing():
    assert changed({"pkg.f": None}, Lifecycle.EXPERIMENTAL) == []


def test_deprecated_holds_until_its_version():
    assert [c.name for c in changed({"pkg.f": None}, Lifecycle.DEPRECATED)] == ["pkg.f"]


def test_undeclared_changes_are_listed():
    old = {k: Entry(v) for k, v in OLD.items()}
    new = {**old, "pkg.h": Entry("h: int"), "pkg.f": Entry("def f(): ...")}
    del new["pkg.Box.size"]
    assert [line.partition(":")[0] for line in compare.undeclared(old, new)] == [
        "pkg.h",
        "pkg.Box.size",
        "pkg.f",
    ]
    assert compare.undeclared(old, old) == []


def test_manifest_is_read_as_written(tmp_path):
    path = tmp_path / "m.toml"
    given = {"a.f": Entry("def f(x='\"'): ...", Lifecycle.DEPRECATED, "2.0")}
    manifest.write(path, given)
    assert manifest.read(path) == given


def test_manifest_with_an_unknown_lifecycle_names_the_entry(tmp_path):
    path = tmp_path / "m.toml"
    path.write_text('[entries."a.f"]\nstub = "f: int"\nlifecycle = "eternal"\n')
    with pytest.raises(ValueError, match="m.toml: entry 'a.f'.*eternal"):
        manifest.read(path)


def test_releases_are_in_order_of_their_versions(monkeypatch, tmp_path):
    for version in ("0.10.0", "0.9.0", "1.0.0"):
        (tmp_path / f"x-{version}.toml").touch()
    monkeypatch.setattr(manifest, "FOLDER", tmp_path)
    names = [path.name for path in manifest.frozen("x")]
    assert names == ["x-0.9.0.toml", "x-0.10.0.toml", "x-1.0.0.toml"]


# The package's own surface


def test_check_passes(capsys):
    assert main(["api", "check"]) == 0, capsys.readouterr().out


def test_surface_has_what_callers_use():
    own = surface.own()
    assert {f"arm_ext.{name}" for name in arm_ext.__all__} <= own.keys()
    assert own["arm_ext.State.APPLIED"].stub == "APPLIED = 'applied'"  # enum member
    assert "arm_ext.Row.reason" in own  # dataclass field
    assert "arm_ext.coverage.Coverage.compute_ops" in own  # property
    assert own["arm_ext.verify.run"].lifecycle is Lifecycle.EXPERIMENTAL


def test_undeclared_export_fails_the_check(monkeypatch, capsys):
    own = surface.own()
    monkeypatch.setattr(
        surface, "own", lambda: {**own, "arm_ext.extra": Entry("extra: int")}
    )
    assert main(["api", "check"]) == 1
    said = capsys.readouterr().out
    assert "arm_ext.extra: is exported, but not declared" in said
    assert "arm-ext api update" in said


# The Arm backend's


def test_patching_leaves_the_backends_api_alone(capsys):
    assert main(["api", "check", "--backend"]) == 0, capsys.readouterr().out


class Wrapped:
    def keeps(self, a, b=1):
        pass

    @staticmethod
    def narrows(a):
        pass


def test_wrapper_that_drops_a_parameter_is_found():
    """``functools.wraps`` hides it from whoever follows ``__wrapped__``."""
    import functools

    class Patched(Wrapped):
        @functools.wraps(Wrapped.keeps)
        def keeps(self, a):
            pass

    stock, patched = (
        {path: Entry(stub) for path, stub in surface._live("m.Wrapped", "Wrapped", c)}
        for c in (Wrapped, Patched)
    )
    (change,) = compare.breaking(stock, patched)
    assert (change.name, change.kind) == ("m.Wrapped.keeps", "signature narrowed")


def test_backend_that_does_not_load_is_said(monkeypatch):
    monkeypatch.setattr(api, "_SURFACE", "import no_such_module")
    with pytest.raises(RuntimeError, match="does not load: .*no_such_module"):
        api.backend_surface(patched=False)
