# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Run the ``__init__`` of a base class when somebody reads what it sets.

A pass is made with an interpreter and a tracer of its own. Most passes of a pipeline
have nothing to do in a graph and never look at them.

"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

_PENDING = "_arm_ext_pending_init"


def defer(instance: Any, init: Callable[[Any], None]) -> None:
    """Have ``init(instance)`` run when :func:`read` is asked for what it sets."""
    vars(instance)[_PENDING] = init


def read(instance: Any, name: str, names: Collection[str]) -> Any:
    """Return an attribute that an instance does not have yet; a ``__getattr__``.

    Args:
        instance (Any): The instance.
        name (str): The attribute.
        names (Collection[str]): What the deferred ``__init__`` sets.

    Raises:
        AttributeError: No deferred ``__init__`` sets the attribute.

    """
    if name in names and _PENDING in vars(instance):
        attributes = dict(vars(instance))
        init = attributes.pop(_PENDING)
        del vars(instance)[_PENDING]
        init(instance)
        vars(instance).update(attributes)  # what was set since is newer
        return getattr(instance, name)
    raise AttributeError(
        f"{type(instance).__name__!r} object has no attribute {name!r}"
    )
