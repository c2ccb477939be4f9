# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""The public API, recorded in manifests and compared before each release.

``manifests/running.toml`` is what the code exports now; ``manifests/arm_ext-*.toml``
are frozen, one a release; ``manifests/executorch-*.toml`` is the public API of the
Arm backend as a release of executorch has it.

"""
