# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Fixes of partitioning, of delegates and of what is said about them, as changes."""

from arm_ext.upstream.change import ARM, Change, Hunk

PARTITIONER = f"{ARM}/tosa/partitioner.py"
_BACKEND = f"{ARM}/tosa/backend.py"
_VELA = f"{ARM}/arm_vela.py"
_BACKEND_API = "exir/backend/backend_api.py"


def _library(
    folder: str, name: str, before: str, *dependencies: str, srcs: str = ""
) -> Hunk:
    """Make a module a target of Buck, in front of a line of the BUCK file."""
    srcs = srcs or f'[\n        "{name}.py",\n    ]'
    lines = "".join(f'        "{name}",\n' for name in dependencies)
    return Hunk(
        f"{folder}/BUCK",
        before,
        "fbcode_target(_kind = runtime.python_library,\n"
        f'    name = "{name}",\n    srcs = {srcs},\n'
        f'    visibility = ["PUBLIC"],\n    deps = [\n{lines}    ],\n)\n\n',
        before=True,
        optional=True,
        shared=True,
    )


def _dependency(folder: str, neighbour: str, target: str) -> Hunk:
    """Have the target of Buck that depends on a neighbour depend on another one too."""
    return Hunk(
        f"{folder}/BUCK",
        f'        "{neighbour}",\n',
        f'        "{target}",\n',
        optional=True,
        shared=True,
    )


_EXIR_TARGETS = (
    "# Use runtime.python_library instead of the one defined in python_library.bzl,\n"
)
_TOSA_PARTITIONER = (
    "fbcode_target(_kind = runtime.python_library,\n" '    name = "partitioner",\n'
)
_TAGS = "//executorch/exir/backend:delegation_tags"
_DELEGATION_TAGS = (
    _library("exir/backend", "delegation_tags", _EXIR_TARGETS, "//caffe2:torch"),
    _dependency(
        f"{ARM}/operator_support", "//executorch/backends/arm:constants", _TAGS
    ),
)


def _warn(module: str, function: str) -> Hunk:
    """Warn of what partition() did; our module imports the partitioner itself."""
    return Hunk(
        PARTITIONER,
        "        tag_constant_data(exported_program)\n",
        f"        from executorch.backends.arm.operator_support.{module} import (\n"
        f"            {function},\n"
        "        )\n\n"
        f"        if (message := {function}(self, exported_program)) is not None:\n"
        "            warnings.warn(str(message), stacklevel=2)\n",
    )


_IMPORT_WARNINGS = Hunk(
    PARTITIONER, "import operator\n", "import warnings\n", shared=True
)

UNQUANTIZED_MODEL = Change(
    title="Warn of a float model for an integer target",
    body="""\
A model that was not quantized lowered for Ethos-U to no delegate at all, and
nothing said so. partition() now warns, with the calls that quantize. What is
delegated does not change.
""",
    sources=("lowering/delegation_tags.py", "partitioner/unquantized.py"),
    hunks=(
        _IMPORT_WARNINGS,
        _warn("unquantized", "unquantized"),
        *_DELEGATION_TAGS,
    ),
    tests=("misc/test_unquantized_warning.py",),
)

SPEC_DROPS_DTYPE = Change(
    title="Warn of ops that an extension of the TOSA spec would take",
    body="""\
The default VgfCompileSpec has no bf16: a bf16 model lowered to nothing, and the
reason was logged below the default level. The same held for fp8, control flow
and int16. partition() now warns once, with the number of ops, the first of
them, and the string to pass. What is delegated does not change.
""",
    sources=(
        "lowering/delegation_tags.py",
        "partitioner/source.py",
        "partitioner/spec_extensions.py",
    ),
    hunks=(
        _IMPORT_WARNINGS,
        _warn("spec_extensions", "missing_extensions"),
        *_DELEGATION_TAGS,
    ),
    tests=("misc/test_extension_warning.py",),
)

ETHOSU_SRAM = Change(
    title="Warn of an Ethos-U delegate that the SRAM does not hold",
    body="""\
Where the arena is in SRAM, Vela takes as much of it as the activations need,
--arena-cache-size or not, and that it is too much shows when the device runs
out. vela_compile() now warns, with both sizes. The size of the SRAM is that of
Arm's reference system unless --arena-cache-size says another one. What is
compiled does not change.
""",
    sources=("lowering/sram.py",),
    hunks=(
        Hunk(_VELA, "import tempfile\n", "import warnings\n"),
        Hunk(
            _VELA,
            "import numpy as np\n",
            "from executorch.backends.arm.common.sram import too_large\n",
        ),
        Hunk(
            _VELA,
            '            block_length = int(data["scratch_shape"][0])\n',
            "            if message := too_large(args, block_length):\n"
            "                warnings.warn(message, stacklevel=2)\n",
        ),
        _dependency(
            ARM, "fbsource//third-party/pypi/ethos-u-vela:ethos-u-vela", ":common"
        ),
    ),
    tests=("misc/test_sram_warning.py",),
)

_PARTITIONING = "executorch.backends.arm.tosa.partitioning"


def _instead(path: str, old: str, new: str) -> Hunk:
    return Hunk(path, old, new, instead=True)


def _of_the_partition(comment: str) -> Hunk:
    """De-tag among the nodes of one partition, not among those of the graph."""
    call = f"                # {comment}\n                self._detag_boundary_nodes(\n"
    return _instead(
        PARTITIONER,
        f"{call}                    module,\n",
        f"{call}                    proposal.tagged(tag),\n",
    )


LINEAR_PARTITIONER = Change(
    title="Partition in time linear in the graph",
    body="""\
With 400 CPU ops on side branches partition() took minutes, and grew with about
the cube of the graph: CapabilityBasedPartitioner builds the set of everything
downstream of each node and tries all pairs of partitions, each partition then
walked the whole graph to find its own nodes and to look for cycles, and the
table of rejected nodes was laid out for a log record that is dropped.

UnionFindPartitioner proposes the same partitions, with the same ids, from one
walk; Proposal answers what follows from each partition's own nodes. A partition
that de-tagging has left with a cycle is cut into the fewest pieces, which are
valid together. _validate_partition and _find_connected_components, which have
tests of their own, are not called any more.
""",
    sources=tuple(
        f"partitioner/{module}.py"
        for module in (
            "__init__",
            "boundary",
            "capability",
            "levels",
            "proposal",
            "vertical",
        )
    ),
    hunks=(
        Hunk(
            PARTITIONER,
            "from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec\n",
            f"from {_PARTITIONING}.capability import UnionFindPartitioner\n"
            f"from {_PARTITIONING}.proposal import Proposal\n",
        ),
        _instead(
            PARTITIONER,
            "partitioner import CapabilityBasedPartitioner, Partition\n",
            "partitioner import Partition\n",
        ),
        _instead(
            PARTITIONER,
            "    def _detag_boundary_nodes(\n        self,\n"
            "        module: GraphModule,\n",
            "    def _detag_boundary_nodes(\n        self,\n"
            "        nodes: Sequence[torch.fx.Node],\n",
        ),
        _instead(
            PARTITIONER,
            "            module: The GraphModule containing the partition.\n",
            "            nodes: The nodes of the partition, in graph order.\n",
        ),
        _instead(
            PARTITIONER,
            "        for node in module.graph.nodes:\n"
            "            if not is_partitioned(node, tag):\n",
            "        for node in nodes:\n"
            "            if not is_partitioned(node, tag):\n",
        ),
        _instead(
            PARTITIONER,
            "        capability_partitioner = CapabilityBasedPartitioner(\n",
            "        capability_partitioner = UnionFindPartitioner(\n",
        ),
        Hunk(
            PARTITIONER,
            "        partition_list = capability_partitioner.propose_partitions()\n",
            "        proposal = Proposal(module, partition_list)\n",
        ),
        _of_the_partition(
            "Detag boundary Q/DQ since we cannot handle them without float support"
        ),
        _of_the_partition(
            "Detag boundary Q/DQ to keep IO quantization outside delegate."
        ),
        _instead(
            PARTITIONER,
            "not _validate_partition(surviving)",
            "not proposal.is_valid(surviving)",
        ),
        _instead(
            PARTITIONER,
            "_find_connected_components(surviving)",
            "proposal.fewest_pieces(surviving)",
        ),
        _instead(
            PARTITIONER,
            '        logger.info("\\n" + reporter.get_table_report())\n',
            "        if logger.isEnabledFor(logging.INFO):\n"
            '            logger.info("\\n" + reporter.get_table_report())\n',
        ),
        _library(
            f"{ARM}/tosa",
            "partitioning",
            _TOSA_PARTITIONER,
            "//caffe2:torch",
            srcs='glob(["partitioning/*.py"])',
        ),
        _dependency(
            f"{ARM}/tosa",
            "//executorch/backends/arm/operator_support:operator_support",
            ":partitioning",
        ),
    ),
    tests=("misc/test_linear_partitioner.py",),
)

DELEGATE_BOUNDARY = Change(
    title="Have a delegate declare the boundary that its TOSA graph has",
    body="""\
A value that the program quantizes is int8 in the TOSA graph as soon as it is
made. Where its quantize was in the next partition, or was taken off that one's
start, the delegate declared float32 and the runtime read int8 codes as floats.
The quantize now joins the partition that makes its value; a partition that
would hand out int64, which TOSA has not, is not delegated.

A delegate also declared an input of which it reads the shape alone, for
full_like or copy, and which its TOSA graph has not: the runtime, which counts,
took every later argument for its neighbour. Such an input is dropped when the
partition is cut out.

TOSABackend compares what a delegate declares with its TOSA graph, and raises an
error that names the tensor rather than build one that differs.
""",
    sources=(
        "lowering/delegation_tags.py",
        "lowering/partition_boundary.py",
        "partitioner/delegate_boundary.py",
    ),
    hunks=(
        Hunk(
            PARTITIONER,
            "from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec\n",
            "from executorch.backends.arm.tosa.delegate_boundary import "
            "mend_boundaries\n",
        ),
        Hunk(
            PARTITIONER,
            "        return tags\n\n    def _create_operator_support(\n",
            "        if self.tosa_spec.support_integer():\n"
            "            support = self._create_operator_support(\n"
            "                containing_program, WhyNoPartitionReporter()\n"
            "            )\n"
            "            tags -= mend_boundaries(\n"
            "                module.graph,\n"
            "                lambda node: support.is_node_supported({}, node),\n"
            "                reporter.report_reject,\n"
            "            )\n",
            before=True,
        ),
        Hunk(
            _BACKEND,
            "from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec\n",
            "from executorch.backends.arm.tosa.delegate_boundary import (\n"
            "    check_boundary,\n    declared_boundary,\n)\n",
        ),
        Hunk(
            _BACKEND,
            "        TOSABackend._preprocess_module(\n"
            "            edge_program.graph_module,\n"
            "            edge_program,\n"
            "            compile_spec,\n"
            "            tosa_graph,\n"
            "            debug_hook,\n"
            "        )\n",
            "        declared = declared_boundary(edge_program)\n",
            before=True,
        ),
        Hunk(
            _BACKEND,
            "        binary = tosa_graph.serialize()\n",
            "        check_boundary(declared, binary)\n",
        ),
        Hunk(
            _BACKEND_API,
            "from executorch.exir.backend.partitioner import Partitioner, "
            "PartitionResult\n",
            "from executorch.exir.backend.partition_boundary import "
            "drop_unread_inputs\n",
            before=True,
        ),
        *(
            Hunk(
                _BACKEND_API,
                first,
                "    drop_unread_inputs(tagged_graph_module, "
                "partition_result.partition_tags)\n",
            )
            for first in (
                'this is to handle one graph module.\n    """\n',
                "    backend_id_to_submodule_name = {}\n",
            )
        ),
        *_DELEGATION_TAGS,
        _library(
            "exir/backend",
            "partition_boundary",
            _EXIR_TARGETS,
            ":delegation_tags",
            ":partitioner",
            "//caffe2:torch",
            "//executorch/exir/dialects:lib",
        ),
        Hunk(
            "exir/backend/BUCK",
            '        "backend_api.py",\n    ],\n    visibility = ["PUBLIC"],\n'
            "    deps = [\n",
            '        ":partition_boundary",\n',
            optional=True,
        ),
        _library(
            f"{ARM}/tosa",
            "delegate_boundary",
            _TOSA_PARTITIONER,
            ":mapping",
            "//caffe2:torch",
            "//executorch/backends/arm:constants",
            _TAGS,
        ),
        _dependency(
            f"{ARM}/tosa",
            "//executorch/backends/arm/operator_support:operator_support",
            ":delegate_boundary",
        ),
    ),
    tests=("misc/test_delegate_boundary.py",),
)

LOWERING_CHANGES = {
    "unquantized-model": UNQUANTIZED_MODEL,
    "spec-drops-dtype": SPEC_DROPS_DTYPE,
    "ethosu-sram": ETHOSU_SRAM,
    "partitioner": LINEAR_PARTITIONER,
    "delegate-boundary": DELEGATE_BOUNDARY,
}
