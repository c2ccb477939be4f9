# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""VQ-BeT: the GPT, the head that picks a code for its features, and the decoder."""

import contextlib
import io

import torch
from arm_ext.programs._program import Model, Policy
from arm_ext.programs.policies import _lerobot
from arm_ext.programs.policies._features import features
from torch.overrides import TorchFunctionMode

VQBET = Policy("vqbet", "VQ-BeT")
_MODELING = "policies.vqbet.modeling_vqbet"
_WIDTH = 32


def _config():
    return _lerobot.load(_MODELING).VQBeTConfig(
        **features(image=96, state=6, action=6),
        vqvae_n_embed=8,
        vqvae_embedding_dim=16,
        vqvae_enc_hidden_dim=32,
        gpt_block_size=32,
        gpt_input_dim=_WIDTH,
        gpt_output_dim=_WIDTH,
        gpt_hidden_dim=_WIDTH,
        gpt_n_layer=2,
        gpt_n_head=4,
    )


@VQBET.program("vgf", "ethos-u85-256")
def gpt():
    """Tokens of five observations and their queries to features."""
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its size
        model = _lerobot.load(_MODELING).GPT(_config()).eval()
    return model, (torch.randn(1, 17, _WIDTH),)


class _MostProbable(TorchFunctionMode):
    """Takes the most probable code where lerobot draws one.

    A random number is not the NPU's to make, and a robot that is to repeat itself
    takes the most probable code.

    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.multinomial:
            return args[0].argmax(-1, keepdim=True)
        return function(*args, **(kwargs or {}))


@VQBET.program("vgf", "ethos-u85-256")
def head():
    """Features to codes and offsets, and those to actions."""
    head = _lerobot.load(_MODELING).VQBeTHead(_config())

    def forward(module, x):
        with _MostProbable():
            return module.layers[0](x)["predicted_action"]

    return Model(forward, _with_codebooks(head)), (torch.randn(1, 7, _WIDTH),)


@VQBET.program("vgf", "ethos-u85-256")
def decode():
    """Codes to actions. They come as int16, for TOSA takes no int64 from outside."""
    vqvae = _lerobot.load(_MODELING).VqVae(_config())

    def forward(module, codes):
        vqvae = module.layers[0]
        latent = vqvae.get_embeddings_from_code(codes.long())
        return vqvae.get_action_from_latent(latent)

    codes = torch.randint(0, 8, (7, 2), dtype=torch.int16)
    return Model(forward, _with_codebooks(vqvae)), (codes,)


def _with_codebooks(module: torch.nn.Module) -> torch.nn.Module:
    """Fill the codebooks, which are zero until they are trained."""
    for name, buffer in module.named_buffers():
        if name.endswith("_codebook.embed"):
            buffer.normal_()
    return module
