# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""Diffusion Policy: the image encoder and one denoising step of its U-Net."""

import torch
from arm_ext.programs._program import Expected, Model, Policy
from arm_ext.programs.policies import _lerobot
from arm_ext.programs.policies._features import features

DIFFUSION = Policy("diffusion", "Diffusion Policy")
_MODELING = "policies.diffusion.modeling_diffusion"


def _config():
    return _lerobot.load(_MODELING).DiffusionConfig(
        **features(image=64, state=6, action=6),
        down_dims=(16, 32, 64),
        diffusion_step_embed_dim=32,
        spatial_softmax_num_keypoints=8,
    )


@DIFFUSION.program("vgf", "ethos-u85-256")
def image_encoder():
    """An image to the coordinates of its keypoints."""
    diffusion = _lerobot.load(_MODELING)
    return diffusion.DiffusionRgbEncoder(_config()).eval(), (torch.rand(1, 3, 64, 64),)


# The timestep comes as int64, which TOSA has not.
_STEP_IN = Expected(cpu_ops=("dim_order_ops._to_dim_order_copy.default",))


@DIFFUSION.program("vgf", "ethos-u85-256", expected=_STEP_IN)
def denoising_step():
    """One step of the U-Net, its timestep an int64 as the scheduler gives it."""
    diffusion = _lerobot.load(_MODELING)
    unet = diffusion.DiffusionConditionalUnet1d(_config(), global_cond_dim=32)
    model = Model(lambda m, x, step, cond: m.layers[0](x, step, cond), unet)
    return model, (torch.randn(1, 16, 6), torch.tensor([50]), torch.randn(1, 32))
