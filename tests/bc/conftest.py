# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Runs each flow on the executorch that is installed, as it is and patched.

The flows call nothing but the documented API of ExecuTorch and its Arm backend, in
the words in which a user's script does: a flow that passes on one release and not
on another, or on stock and not patched, is a break of backward compatibility.

"""

import arm_ext
import pytest


@pytest.fixture(params=["stock", "patched"], autouse=True)
def executorch(request):
    fixes = {"only": ()} if request.param == "stock" else {}
    with arm_ext.patched(**fixes):
        yield request.param
