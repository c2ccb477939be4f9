# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""apply, revert, patched and status on the real table, and on a small one."""

import os
import subprocess
import sys
import threading
import types

import arm_ext
import pytest
from arm_ext import _engine, State
from arm_ext.fix import already_fixed, apply as needed, cannot, Fix, TABLE

NAMES = [fix.name for fix in TABLE]


@pytest.fixture(autouse=True)
def applied_afterwards():
    """Whatever a test does, the next one starts with everything applied."""
    yield
    arm_ext.apply()


def symbols() -> list[str]:
    return [s for patcher in _engine._applied._patchers for s in patcher.symbols]


def raw(symbol: str):
    """The attribute behind a symbol as it is stored; None where stock has none."""
    import inspect

    from arm_ext.patcher import _resolve

    owner, name = _resolve(symbol)
    return inspect.getattr_static(owner, name, None)


def test_import_applies_every_fix():
    assert [row.fix for row in arm_ext.status()] == NAMES
    for row in arm_ext.status():
        assert row.state in (State.APPLIED, State.UPSTREAM), row


def test_status_prints_as_a_table(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = str(arm_ext.status())
    assert all(word in text for word in ("fix", "gap", "state", "reason", *NAMES))


def test_revert_restores_identical_objects_and_apply_is_idempotent():
    patched = [s for s in symbols() if ":" in s]
    arm_ext.revert()
    stock = {s: raw(s) for s in patched}
    for _ in range(2):
        arm_ext.apply()
    assert symbols()[: len(patched)] == patched or set(patched) <= set(symbols())
    arm_ext.revert()
    assert all(raw(s) is stock[s] for s in patched)
    assert {row.state for row in arm_ext.status()} == {State.OFF}


def test_only_and_disable_choose():
    name = "guards-module"
    rows = {row.fix: row.state for row in arm_ext.apply(only=[name])}
    assert rows.pop(name) is State.APPLIED
    assert set(rows.values()) == {State.DISABLED}
    rows = {row.fix: row.state for row in arm_ext.apply(disable=[name])}
    assert rows[name] is State.DISABLED


@pytest.mark.parametrize("argument", ["only", "disable"])
def test_unknown_fix_is_refused_with_a_hint(argument):
    with pytest.raises(ValueError, match="did you mean 'guards-module'"):
        arm_ext.apply(**{argument: ["guards-modul"]})


def test_patched_restores_what_was_applied_before():
    arm_ext.apply(disable=[NAMES[0]])
    before = arm_ext.status()
    with pytest.raises(RuntimeError):
        with arm_ext.patched(only=()) as status:
            assert {row.state for row in status} == {State.DISABLED}
            raise RuntimeError
    assert arm_ext.status() == before


def test_threads_apply_once():
    arm_ext.revert()
    threads = [threading.Thread(target=arm_ext.apply) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    once = symbols()
    arm_ext.revert()
    arm_ext.apply()
    assert symbols() == once


@pytest.fixture
def small_table(monkeypatch):
    """Replace the table by fixes made of plain functions."""
    victim = types.ModuleType("engine_victim")
    victim.run = lambda x: x
    victim.other = lambda x: x
    monkeypatch.setitem(sys.modules, "engine_victim", victim)
    modules = {}

    def load(fix):
        if fix.name not in modules:
            raise ImportError(f"cannot import name {fix.name!r}")
        return modules[fix.name]

    def define(name, needs, install=lambda patcher: None):
        modules[name] = types.SimpleNamespace(needs=lambda _: needs, install=install)

    arm_ext.revert()
    monkeypatch.setattr(Fix, "load", load)
    monkeypatch.setattr(
        _engine, "TABLE", tuple(Fix(n, n) for n in ("fits", "fixed", "cannot", "half"))
    )
    define("fits", needed(), lambda p: p.set("engine_victim:run", "ours"))
    define("fixed", already_fixed("upstream does it"))
    define("cannot", cannot("module:x is gone"))
    yield define, victim
    arm_ext.revert()


def half_install(patcher):
    patcher.set("engine_victim:other", "ours")
    patcher.set("engine_victim:renamed", "ours")


def test_each_state_and_no_half_applied_fix(small_table):
    define, victim = small_table
    other = victim.other
    define("half", needed(), half_install)
    with pytest.warns(UserWarning, match="half skipped"):
        rows = {row.fix: row for row in arm_ext.apply()}
    assert rows["fits"].state is State.APPLIED and victim.run == "ours"
    assert rows["fixed"].state is State.UPSTREAM
    assert rows["fixed"].reason == "upstream does it"
    assert rows["cannot"].state is State.SKIPPED
    assert rows["half"].state is State.SKIPPED
    assert "engine_victim:renamed does not exist" in rows["half"].reason
    assert victim.other is other


def test_fix_whose_imports_moved_is_skipped_with_the_name(small_table):
    with pytest.warns(UserWarning, match="cannot import name 'half'"):
        rows = {row.fix: row for row in arm_ext.apply()}
    assert rows["half"].state is State.SKIPPED


def run_python(code: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
    )


STATES = "import arm_ext; print(*{str(r.state) for r in arm_ext.status()}, sep='|')"


def test_environment_switches_everything_off():
    code = STATES + "; import sys; print('executorch' in sys.modules)"
    done = run_python(code, ARM_EXT="0")
    assert done.stdout.split("\n")[:2] == ["off", "False"], done.stderr


def test_environment_disables_by_name_and_refuses_unknown_names():
    code = "import arm_ext; print(*[r.fix for r in arm_ext.status() if r.state == 'disabled'])"
    done = run_python(code, ARM_EXT_DISABLE="spec-drops-dtype, guards-module")
    assert done.stdout.split() == ["guards-module", "spec-drops-dtype"], done.stderr
    done = run_python(code, ARM_EXT_DISABLE="nonsense")
    assert "ARM_EXT_DISABLE: no fix is named 'nonsense'" in done.stderr


WITHOUT_EXECUTORCH = """
import importlib.metadata, sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("executorch", "torchao"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Block())
version = importlib.metadata.version

def hidden(name):
    if name == "executorch":
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)

importlib.metadata.version = hidden
"""


def test_import_without_executorch():
    code = WITHOUT_EXECUTORCH + (
        "import arm_ext, arm_ext.partitioner\n"
        "print({str(r.state) for r in arm_ext.status()},"
        "{r.reason for r in arm_ext.status()})"
    )
    done = run_python(code)
    assert (
        done.stdout.strip() == "{'skipped'} {'executorch is not installed'}"
    ), done.stderr


def test_references_imported_before_arm_ext_see_the_change():
    code = (
        "from executorch.backends.arm.vgf import VgfPartitioner\n"
        "from executorch.exir import to_edge_transform_and_lower\n"
        "stock = VgfPartitioner.ops_to_not_decompose\n"
        "import arm_ext\n"
        "print(VgfPartitioner.ops_to_not_decompose is not stock)\n"
        "arm_ext.revert()\n"
        "print(VgfPartitioner.ops_to_not_decompose is stock)\n"
    )
    done = run_python(code)
    assert done.stdout.split() == ["True", "True"], done.stderr
