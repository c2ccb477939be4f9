# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Constants and buffers that several partitions read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from arm_ext.lowering.delegation_tags import TAG
from torch.export import ExportedProgram
from torch.fx import Node


def share_mutated_buffers(program: ExportedProgram) -> None:
    """Leave a mutated buffer outside of a delegate that is not its only user.

    A user of what is written to it is a user of the buffer.

    A delegate that takes such a buffer keeps a copy of its own. What is written to
    the other copies, or by another partition, does not reach it::

        partition 1: buffer + x          buffer_copy <- partition 2: buffer_copy * 2

    The buffer becomes an input of both instead, and what is written an output.

    Args:
        program (ExportedProgram): A partitioned program; tags are taken off its
            placeholders.

    """
    signature = program.graph_signature
    written = {target: name for name, target in signature.buffers_to_mutate.items()}
    nodes = {node.name: node for node in program.graph.nodes}
    outputs = [spec.arg.name for spec in signature.output_specs]
    for node in nodes.values():
        target = signature.inputs_to_buffers.get(node.name)
        if node.op != "placeholder" or target not in written or TAG not in node.meta:
            continue
        new = nodes[written[target]]
        involved = {new, *node.users, *new.users} - {program.graph.output_node()}
        tags = {user.meta.get(TAG) for user in involved}
        if tags != {node.meta[TAG]} or outputs.count(new.name) > 1:
            del node.meta[TAG]


def declare_in_graph_order(program: ExportedProgram) -> None:
    """Order the input specs of a program as its placeholders.

    ExecuTorch lifts a constant in front of the first user input. Where there is none,
    each goes to the front, and they are declared the other way around.

    """
    names = (node.name for node in program.graph.nodes if node.op == "placeholder")
    position = {name: index for index, name in enumerate(names)}
    program.graph_signature.input_specs.sort(key=lambda spec: position[spec.arg.name])


def duplicate_for_every_user(
    program: ExportedProgram, name: str, duplicate: Callable[[], set[str]]
) -> set[str]:
    """Duplicate a constant, and connect the copies to the users that have none yet.

    ExecuTorch makes a copy for each user but the first, and connects it where the
    constant is an argument itself. In the list of a ``cat``, in the operands of a
    ``cond`` and in the outputs of the program the constant stays what it was::

        constant      -> op_a, cat([constant, x])
        constant_copy -> (nobody)

    Args:
        program (ExportedProgram): The program; it is changed.
        name (str): The name of the constant's placeholder.
        duplicate (Callable): Makes the copies and returns their names.

    """
    constant = next(node for node in program.graph.nodes if node.name == name)
    _, *others = constant.users
    copied = duplicate()
    placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
    unused = [n for n in placeholders if n.name in copied and not n.users]
    waiting = [user for user in others if user in constant.users]
    for user, copy in zip(waiting, unused, strict=True):
        user.replace_input_with(constant, copy)
        if user.op == "output":
            _rename_output(program, constant, copy)
    if waiting:
        program.graph_module.recompile()
        program._validate()
    return copied


def _rename_output(program: ExportedProgram, old: Node, new: Node) -> None:
    for spec in program.graph_signature.output_specs:
        if spec.arg.name == old.name:
            spec.arg = dataclasses.replace(spec.arg, name=new.name)
