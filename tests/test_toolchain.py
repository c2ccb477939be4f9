# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Finding a model converter and starting it on an older glibc."""

import shutil
from pathlib import Path

import pytest
from arm_ext import toolchain
from arm_ext.toolchain import ToolUnavailable

GLIBC_TRACE = (
    "model-converter: /lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found "
    "(required by model-converter)"
)


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def private(tmp_path, monkeypatch) -> Path:
    """An empty private folder and no converter but what the test puts there."""
    monkeypatch.setattr(toolchain, "private_folder", lambda: tmp_path / "private")
    monkeypatch.setattr(toolchain, "wheel_binary", lambda package, name: None)
    for name in ("MODEL_CONVERTER_PATH", "MODEL_CONVERTER_LIB_DIR", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tmp_path / "private"


@pytest.fixture
def broken(tmp_path, monkeypatch, private) -> Path:
    """A converter that is a real program and does not start."""
    path = Path(shutil.copy("/bin/false", tmp_path / "broken-converter"))
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(path))
    return path


def fake_loader(folder: Path) -> None:
    """Stands for ld.so: prints the library path, the program and its arguments."""
    script(folder / "usr/lib/any/ld-linux-any.so.2", 'echo "$2|$3|$4"')


# Finding one


def test_named_converter_comes_before_path_and_wheel(tmp_path, monkeypatch, private):
    wheel = script(tmp_path / "wheel/model-converter", "exit 0")
    monkeypatch.setattr(toolchain, "wheel_binary", lambda package, name: wheel)
    assert toolchain.find_converter() == wheel
    on_path = script(tmp_path / "path/model-converter", "exit 0")
    monkeypatch.setenv("PATH", f"{on_path.parent}:/usr/bin:/bin")
    assert toolchain.find_converter() == on_path
    named = script(tmp_path / "named", "exit 0")
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(named))
    assert toolchain.find_converter() == named


def test_named_file_that_is_not_executable_is_passed_over(
    tmp_path, monkeypatch, private
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(tmp_path / "file"))
    assert toolchain.find_converter() is None


def test_wheel_script_on_path_stands_for_the_wheel_binary(
    tmp_path, monkeypatch, private
):
    wheel = script(tmp_path / "wheel/model-converter", "exit 0")
    monkeypatch.setattr(toolchain, "wheel_binary", lambda package, name: wheel)
    scripts = script(tmp_path / "scripts/model-converter", "exit 0").parent
    monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda name: str(scripts))
    monkeypatch.setenv("PATH", f"{scripts}:/usr/bin:/bin")
    assert toolchain.find_converter() == wheel


def test_nothing_installed_says_what_to_install(private):
    with pytest.raises(ToolUnavailable, match=r"pip install 'executorch\[vgf\]'"):
        toolchain.usable_converter()
    with pytest.raises(ToolUnavailable, match=r"pip install 'executorch\[vgf\]'"):
        toolchain.set_up_converter()


# Whether it starts


def test_converter_that_starts_is_used_as_it_is(tmp_path, monkeypatch, private):
    good = script(tmp_path / "good", "exit 0")
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(good))
    assert toolchain.usable_converter() == good
    assert toolchain.set_up_converter() == good
    assert not private.exists()


def test_loader_trace_becomes_one_sentence(tmp_path, private):
    converter = script(tmp_path / "c", f"cat >&2 <<'END'\n{GLIBC_TRACE}\nEND\nexit 1")
    reason = toolchain.why_not(converter)
    assert "newer C library" in reason
    assert "GLIBCXX" not in reason and "\n" not in reason


def test_other_failures_give_their_first_line(tmp_path, private):
    assert toolchain.why_not(script(tmp_path / "a", "echo one; echo two; exit 3")) == (
        "one"
    )
    assert toolchain.why_not(script(tmp_path / "b", "exit 3")) == "it exits with 3"
    assert "No such file" in toolchain.why_not(tmp_path / "missing")


def test_library_folder_of_the_user_is_on_the_path(tmp_path, monkeypatch, private):
    monkeypatch.setenv("MODEL_CONVERTER_LIB_DIR", "/mine")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/theirs")
    check = script(tmp_path / "c", '[ "$LD_LIBRARY_PATH" = /mine:/theirs ]')
    assert toolchain.why_not(check) is None


def test_broken_converter_names_the_command(broken):
    with pytest.raises(ToolUnavailable) as error:
        toolchain.usable_converter()
    assert str(broken) in str(error.value)
    assert f"`{toolchain.SETUP_COMMAND}`" in str(error.value)


def test_broken_script_is_not_promised_a_mend(tmp_path, monkeypatch, private):
    bad = script(tmp_path / "bad", "echo it is broken; exit 1")
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(bad))
    for call in (toolchain.usable_converter, toolchain.set_up_converter):
        with pytest.raises(ToolUnavailable, match="it is broken.$") as error:
            call()
        assert toolchain.SETUP_COMMAND not in str(error.value)


# The private loader


def test_set_up_runs_the_converter_through_the_loader(broken, monkeypatch, private):
    monkeypatch.setattr(toolchain, "_unpack_glibc", fake_loader)
    wrapper = toolchain.set_up_converter()
    assert wrapper == private / "bin/model-converter"
    assert toolchain.usable_converter() == wrapper
    folder = private / "glibc/usr/lib/any"
    assert toolchain._run([str(wrapper), "-i"]) == f"{folder}|{broken}|-i\n"
    monkeypatch.setenv("LD_LIBRARY_PATH", "/mine")
    assert toolchain._run([str(wrapper), "-i"]) == f"{folder}:/mine|{broken}|-i\n"


def test_set_up_twice_unpacks_once(broken, monkeypatch, private):
    calls = []
    monkeypatch.setattr(
        toolchain,
        "_unpack_glibc",
        lambda folder: (calls.append(folder), fake_loader(folder)),
    )
    assert toolchain.set_up_converter() == toolchain.set_up_converter()
    assert len(calls) == 1


def test_wrapper_is_never_used_for_another_converter(
    broken, tmp_path, monkeypatch, private
):
    monkeypatch.setattr(toolchain, "_unpack_glibc", fake_loader)
    toolchain.set_up_converter()
    other = shutil.copy("/bin/false", tmp_path / "other")
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(other))
    with pytest.raises(ToolUnavailable, match=toolchain.SETUP_COMMAND):
        toolchain.usable_converter()
    assert toolchain.set_up_converter() == toolchain.usable_converter()


def test_paths_with_spaces_and_quotes(tmp_path, monkeypatch, private):
    odd = tmp_path / "it's a $folder"
    odd.mkdir()
    monkeypatch.setattr(toolchain, "private_folder", lambda: odd)
    monkeypatch.setattr(toolchain, "_unpack_glibc", fake_loader)
    converter = shutil.copy("/bin/false", odd / "a converter")
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(converter))
    wrapper = toolchain.set_up_converter()
    assert f"|{converter}|-i" in toolchain._run([str(wrapper), "-i"])


def test_half_finished_set_up_counts_as_none(broken, monkeypatch, private):
    monkeypatch.setattr(toolchain, "_unpack_glibc", fake_loader)
    toolchain.set_up_converter()
    shutil.rmtree(private / "glibc")
    assert toolchain.through_loader() == []
    with pytest.raises(ToolUnavailable, match=toolchain.SETUP_COMMAND):
        toolchain.usable_converter()


@pytest.mark.parametrize("prefix", ["/usr", "/usr/local"])
def test_system_folders_are_left_alone(prefix, monkeypatch):
    monkeypatch.setattr(toolchain.sys, "prefix", prefix)
    assert not toolchain.private_folder().is_relative_to("/usr")


def test_unknown_release_is_said(broken, monkeypatch, private):
    monkeypatch.setattr(
        toolchain, "_os_release", lambda: {"VERSION_CODENAME": "nosuchrelease"}
    )
    with pytest.raises(ToolUnavailable, match="nosuchrelease.*MODEL_CONVERTER_PATH"):
        toolchain.set_up_converter()
    assert not toolchain.through_loader()


URIS = """\
'http://mirror.example/security/dists/bookworm-security/InRelease' x 0
'http://mirror.example/debian/dists/bookworm/InRelease' x 0
'http://mirror.example/debian/dists/bookworm/main/binary-amd64/Packages.xz' x 0
"""


def test_mirror_is_the_one_of_the_machine_s_release():
    assert toolchain._mirror(URIS, "bookworm") == "http://mirror.example/debian"
    with pytest.raises(ToolUnavailable, match="no mirror of jammy"):
        toolchain._mirror(URIS, "jammy")


@pytest.mark.parametrize(
    "said",
    ["W: GPG error: x NO_PUBKEY 1", "W: Failed to fetch x", "E: Unable to lock x"],
)
def test_apt_that_only_warns_of_a_failure_has_failed(said, tmp_path):
    apt = script(tmp_path / "apt-get", f'echo "{said}" >&2')
    with pytest.raises(ToolUnavailable, match=said):
        toolchain._run([str(apt)])


def test_missing_apt_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolUnavailable, match="needs apt-get"):
        toolchain._run(["apt-get"])
