# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Find the nodes that keep a partition from being lowered.

The passes, the serializer and the compilers tell that a partition cannot be lowered by
an exception. Some name a node, most do not. :func:`offenders` finds out by lowering
parts of the partition.

"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch.fx import Graph, Node
from torch.fx.node import map_arg

# Parts of a partition that may be lowered, for each bit of its number of nodes.
_TRIALS_PER_BIT = 4


@dataclass(frozen=True)
class Failure:
    """A partition that could not be lowered.

    Attributes:
        nodes (tuple[str, ...]): Names of the nodes that may be the reason, in
            topological order.
        error (BaseException): What the lowering raised.
        named (tuple[str, ...]): Those of the nodes that the error is about; empty if
            it does not say.

    """

    nodes: tuple[str, ...]
    error: BaseException
    named: tuple[str, ...] = ()


# Lowers the given nodes only; returns the first failure, or None if there is none.
Lower = Callable[[Sequence[str]], "Failure | None"]
# Returns the nodes that differ from the given one in their values only.
Alike = Callable[[str], Collection[str]]


def offenders(
    failure: Failure, lower: Lower, alike: Alike = lambda name: (name,)
) -> Mapping[str, BaseException]:
    """Return the nodes without which a partition lowers, each with its error.

    An error that names nodes is believed if the rest lowers without them. Otherwise
    the first node with which the nodes before it do not lower is one, and so on. After
    two nodes that are alike, all those like them are taken. That takes a number of
    trials that is logarithmic in the number of nodes; if they do not do, all nodes
    are returned.

    Args:
        failure (Failure): The partition.
        lower (Callable): Lowers some of the partition's nodes.
        alike (Callable): Given a name, returns the names of the nodes of the program
            with the same op, shapes and dtypes.

    """
    trials = _Trials(lower, _TRIALS_PER_BIT * (len(failure.nodes).bit_length() + 1))
    try:
        return _search(failure, trials, alike)
    except _OutOfTrials:
        return dict.fromkeys(failure.nodes, failure.error)


def alike_in(graph: Graph) -> Alike:
    """Return a function that names the nodes of a graph with one op, shape and dtype.

    It looks at the graph when it is called first.

    """
    groups: dict[str, list[str]] = {}
    group_of: dict[str, list[str]] = {}

    def alike(name: str) -> Collection[str]:
        if not group_of:
            for node in graph.nodes:
                group = groups.setdefault(_signature(node), [])
                group.append(node.name)
                group_of[node.name] = group
        return group_of.get(name, (name,))

    return alike


def _signature(node: Node) -> str:
    return str((node.target, map_arg((node.args, node.kwargs), _type), _type(node)))


def _type(node: Node) -> Any:
    value = node.meta.get("val")
    return (getattr(value, "dtype", type(value)), str(getattr(value, "shape", "")))


class _OutOfTrials(Exception):
    pass


class _Trials:
    def __init__(self, lower: Lower, left: int) -> None:
        self._lower = lower
        self._left = left

    def __call__(self, nodes: Sequence[str]) -> Failure | None:
        if not nodes:
            return None
        if not self._left:
            raise _OutOfTrials
        self._left -= 1
        return self._lower(nodes)


def _search(partition: Failure, lower: Lower, alike: Alike) -> dict[str, BaseException]:
    named: dict[str, BaseException] = {}
    found: dict[str, BaseException] = {}
    failure: Failure | None = partition
    while failure is not None:
        if failure.named:
            _add(named, failure.named, failure.error, alike)
        else:
            name, error = _first_offender(failure, lower)
            _add(found, [name], error, alike)
        failure = lower(_without(partition.nodes, {**named, **found}))
    if named and found and lower(_without(partition.nodes, found)) is None:
        return found  # the named ones were not to blame
    return {**named, **found}


def _add(
    known: dict[str, BaseException],
    names: Collection[str],
    error: BaseException,
    alike: Alike,
) -> None:
    for name in names:
        if any(other in known for other in alike(name)):
            known.update(dict.fromkeys(alike(name), error))
        known[name] = error


def _without(nodes: Sequence[str], known: Collection[str]) -> list[str]:
    return [name for name in nodes if name not in known]


def _first_offender(failure: Failure, lower: Lower) -> tuple[str, BaseException]:
    """Return the last node of a shortest start that does not lower, and the error."""
    good, bad = 0, len(failure.nodes)
    while bad - good > 1:
        middle = (good + bad) // 2
        trial = lower(failure.nodes[:middle])
        if trial is None:
            good = middle
        else:
            bad, failure = middle, Failure(failure.nodes, trial.error)
    return failure.nodes[bad - 1], failure.error
