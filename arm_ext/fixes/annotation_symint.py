# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Quantizing a model with dynamic shapes fails on its sizes.

Stock: passes of the annotation pipeline that decompose layer norm, mean and
others take shapes from ``tensor.data.shape``, and the tracer of ``ExportPass``
writes a ``torch.SymInt`` into the arguments as it is. ``prepare_pt2e`` returns,
and the first call of the prepared module raises ``NameError: s77``, because the
symbol is an undefined name in the code of the graph module. Where a size is a
node, as in ``x.reshape(x.shape[0], -1)``, ``prepare_pt2e`` fails: ``validate``
takes what it finds in place of the device of a size for another device.

Here: a last pass of the pipeline replaces the symbolic sizes by nodes that
compute them from the sizes of the inputs, and ``validate`` does not see sizes.

"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from arm_ext.fix import already_fixed, apply, cannot, Installed, Need
from arm_ext.fixes._annotation import annotate, PARAMETERS, PIPELINE, probe_program
from arm_ext.passes.materialize_symint_args_pass import MaterializeSymIntArgsPass
from arm_ext.patcher import Patcher
from executorch.backends.arm.quantizer import TOSAQuantizer
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import py_sym_types

VALIDATE = "executorch.backends.arm.quantizer.arm_quantizer:TOSAQuantizer.validate"


def needs(installed: Installed) -> Need:
    if not hasattr(torch.fx.Graph, "materialize_symints"):
        return cannot("torch.fx:Graph.materialize_symints does not exist")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of what is probed for
            program = annotate(probe_program())
    except Exception as error:
        return cannot(f"{PIPELINE} fails on a probe: {error}")
    if _materialize(program).modified or not _validates(program):
        return apply()
    return already_fixed("the annotation pipeline makes sizes nodes")


def install(patcher: Patcher) -> None:
    patcher.wrap(PIPELINE, _then_materialize, parameters=PARAMETERS)
    patcher.wrap(VALIDATE, _validate_without_sizes, parameters=("self", "model"))


def _materialize(program: GraphModule) -> Any:
    return MaterializeSymIntArgsPass(tfa_pass=True)(program)


def _validates(program: GraphModule) -> bool:
    try:
        TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT")).validate(program)
    except ValueError:
        return False
    return True


def _then_materialize(wrapped: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    return _materialize(wrapped(*args, **kwargs)).graph_module


@contextmanager
def _sizes_hidden(model: GraphModule) -> Iterator[None]:
    sizes = {
        node: node.meta.pop("val")
        for node in model.graph.nodes
        if isinstance(node.meta.get("val"), py_sym_types)
    }
    try:
        yield
    finally:
        for node, value in sizes.items():
            node.meta["val"] = value


def _validate_without_sizes(
    wrapped: Any, instance: Any, args: tuple, kwargs: dict
) -> Any:
    def validate(model: GraphModule) -> Any:
        with _sizes_hidden(model):
            return wrapped(model)

    return validate(*args, **kwargs)
