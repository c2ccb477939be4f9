# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.

"""Call functions in a forked process, so that a crash of it is an exception."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any


def can_fork() -> bool:
    """Whether a process can go on in a copy of itself; not so on Windows and macOS."""
    return sys.platform == "linux"


class Child:
    """A process that is forked when it is first needed, and again after a crash.

    It has what its parent had then. What a call changes in files is seen here, what it
    changes in objects is not; what it prints is printed when it has ended. As a context
    manager it is killed at the end.

    Args:
        name (str): What a crash is reported of.

    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._pid: int | None = None

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
            self._end()

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return what a function returns there, and raise what it raises there.

        Args:
            function (Callable): The same one at each call. It returns, or raises, what
                can be pickled; an exception that cannot becomes a ``RuntimeError``
                with its text.
            *args (Any): For the function; they can be pickled.

        Raises:
            RuntimeError: The process crashed.

        """
        if self._pid is None:
            self._start(function)
        try:
            self._connection.send(args)
            out, err, result, error = pickle.loads(self._connection.recv_bytes())
        except (EOFError, ConnectionError):
            raise RuntimeError(f"{self._name} crashed: {self._end()}") from None
        sys.stdout.write(out)
        sys.stderr.write(err)
        if error is not None:
            raise error
        return result

    def _start(self, function: Callable[..., Any]) -> None:
        self._connection, theirs = Pipe()
        with warnings.catch_warnings():  # of threads, none of which it needs
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            try:
                self._connection.close()
                _serve(theirs, function)
            finally:
                os._exit(0)
        theirs.close()

    def _end(self) -> str:
        """Wait for the end of the process, and return how it ended."""
        assert self._pid is not None
        _, status = os.waitpid(self._pid, 0)
        self._pid = None
        self._connection.close()
        code = os.waitstatus_to_exitcode(status)
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def _serve(connection: Connection, function: Callable[..., Any]) -> None:
    while True:
        args = connection.recv()
        out, err = io.StringIO(), io.StringIO()
        result, error = None, None
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                result = function(*args)
            except BaseException as raised:  # noqa: B036, the parent raises it
                error = raised
        connection.send_bytes(_pickled(out.getvalue(), err.getvalue(), result, error))


def _pickled(out: str, err: str, result: Any, error: BaseException | None) -> bytes:
    try:
        sent = pickle.dumps((out, err, result, error))
        pickle.loads(sent)
        return sent
    except Exception:
        text = f"{type(error).__name__}: {error}" if error else "its result is lost"
        return pickle.dumps((out, err, None, RuntimeError(text)))
