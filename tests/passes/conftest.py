# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Makes the helpers in this directory importable for its tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
