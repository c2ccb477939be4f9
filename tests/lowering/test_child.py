# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""What comes back from a function that is called in a child process."""

import os
import signal
import sys

import pytest
from arm_ext.lowering.child import can_fork, Child

pytestmark = pytest.mark.skipif(not can_fork(), reason="it is not used here")


@pytest.fixture
def child():
    with Child("Vela") as child:
        yield child


class Unpicklable(Exception):
    def __init__(self, one, two):  # noqa: B042, which is the point
        super().__init__(f"{one} and {two}")


def test_the_result_and_what_is_printed(child, capsys, tmp_path):
    def work(number):
        (tmp_path / "file").write_text("written")
        print("out")
        print("err", file=sys.stderr)
        return number, os.getpid()

    number, process = child.call(work, 2**100)
    assert number == 2**100 and process != os.getpid()
    assert child.call(work, 1) == (1, process)
    assert (tmp_path / "file").read_text() == "written"
    assert capsys.readouterr() == ("out\n" * 2, "err\n" * 2)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(2), KeyError("k")])
def test_an_exception(child, error):
    def fail():
        raise error

    with pytest.raises(type(error)) as raised:
        child.call(fail)
    assert raised.value.args == error.args


def test_an_exception_that_cannot_be_sent(child):
    def fail():
        raise Unpicklable(1, 2)

    with pytest.raises(RuntimeError, match="Unpicklable: 1 and 2"):
        child.call(fail)


@pytest.mark.parametrize(
    ("crash", "said"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "Vela crashed: SIGSEGV"),
        (lambda: os._exit(3), "Vela crashed: exit status 3"),
    ],
)
def test_a_crash(child, crash, said):
    for _ in range(2):
        with pytest.raises(RuntimeError, match=said):
            child.call(crash)


def test_it_ends_with_the_block():
    with Child("Vela") as child:
        process = child.call(os.getpid)
        os.kill(process, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
