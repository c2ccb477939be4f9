# Copyright 2026 The arm_ext Authors.
#
# This source code is licensed under the BSD-style license found in the
# LICENSE file in the root directory of this source tree.
"""SmolVLA: its vision encoder, the prefill of its caches, one denoising step."""

from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import torch
from arm_ext.programs._program import Expected, Model, Policy
from arm_ext.programs.policies import _lerobot
from arm_ext.programs.policies._features import features

SMOLVLA = Policy("smolvla", "SmolVLA")
_MODELING = "policies.smolvla.modeling_smolvla"
_IMAGE_TOKENS, _WORDS, _WIDTH, _HEAD, _CHUNK = 4, 6, 64, 16, 8
_PREFIX = _IMAGE_TOKENS + _WORDS + 1  # the state is the last
_FLOAT64 = (
    *("unsqueeze_copy.default", "mul.Tensor"),
    *("sin.default", "cos.default", "cat.default"),
)
_CAST = "dim_order_ops._to_dim_order_copy.default"
# The words come as int64.
_WORDS_IN = Expected(cpu_ops=(_CAST,))
# The timestep is embedded in float64, which TOSA has not.
_EMBEDDING = (_CAST, _CAST, *(f"aten.{op}" for op in _FLOAT64))


@SMOLVLA.program("vgf", "ethos-u85-256")
def vision():
    """An image to the tokens of the language model."""
    model = Model(lambda m, x: m.layers[0].vlm_with_expert.embed_image(x), _smolvla())
    return model, (torch.rand(1, 3, 64, 64),)


@SMOLVLA.program("vgf", "ethos-u85-256", expected=_WORDS_IN)
def prefill():
    """Image tokens, words and state to the keys and values of each layer."""
    model = _smolvla()
    # The tokens are the other part's output.
    model.vlm_with_expert.embed_image = lambda image: image
    smolvla = _lerobot.load(_MODELING)

    def forward(module, image, words, padding, state):
        model = module.layers[0]
        seen = torch.ones(1, dtype=torch.bool)
        embeddings, present, attends = model.embed_prefix(
            [image], [seen], words, padding, state
        )
        _, cache = model.vlm_with_expert(
            attention_mask=smolvla.make_att_2d_masks(present, attends),
            position_ids=torch.cumsum(present, dim=1) - 1,
            inputs_embeds=[embeddings, None],
            use_cache=True,
            fill_kv_cache=True,
        )
        return _tensors(cache)

    words = torch.randint(0, 128, (1, _WORDS))
    padding = torch.arange(_WORDS)[None] < _WORDS - 2
    image = torch.randn(1, _IMAGE_TOKENS, _WIDTH)
    return Model(forward, model), (image, words, padding, torch.randn(1, 32))


@SMOLVLA.program("vgf", "ethos-u85-256", expected=Expected(cpu_ops=_EMBEDDING))
def denoising_step():
    """One step of the action expert on the caches of the prefill."""
    return _denoising_step(torch.float32)


@SMOLVLA.program("vgf-bf16", expected=Expected(cpu_ops=_EMBEDDING, tolerance=0.05))
def denoising_step_bf16():
    """The same, with language model and expert in bf16."""
    return _denoising_step(torch.bfloat16)


def _denoising_step(dtype: torch.dtype) -> tuple[torch.nn.Module, tuple]:
    model = _smolvla()
    model.vlm_with_expert.to(dtype)

    def forward(module, x, time, present, *cache):
        return module.layers[0].denoise_step(present, _cache(cache), x, time)

    layers = cast(Any, model.vlm_with_expert).num_vlm_layers
    present = torch.arange(_PREFIX)[None] != _PREFIX - 2
    cache = torch.randn(2 * layers, 1, _PREFIX, 2, _HEAD).to(dtype)
    x, time = torch.randn(1, _CHUNK, 32), torch.tensor([0.5])
    return Model(forward, model), (x, time, present, *(c.clone() for c in cache))


def _tensors(cache: dict[int, dict[str, torch.Tensor]]) -> list[torch.Tensor]:
    kinds = ("key_states", "value_states")
    return [cache[layer][kind] for layer in sorted(cache) for kind in kinds]


def _cache(tensors: tuple[torch.Tensor, ...]) -> dict[int, dict[str, torch.Tensor]]:
    pairs = zip(tensors[::2], tensors[1::2])
    return {
        layer: {"key_states": keys, "value_states": values}
        for layer, (keys, values) in enumerate(pairs)
    }


def _smolvla() -> torch.nn.Module:
    """Return the model with its backbone from a small configuration."""
    names = "AutoProcessor", "AutoModel", "SmolVLMForConditionalGeneration"
    backbone = _lerobot.load("policies.smolvla.smolvlm_with_expert", *names)
    smolvla = _lerobot.load(_MODELING)
    config = smolvla.SmolVLAConfig(
        **features(image=64, state=6, action=6),
        chunk_size=_CHUNK,
        n_action_steps=_CHUNK,
        num_vlm_layers=0,  # all of them
    )
    tokenizer = SimpleNamespace(fake_image_token_id=1, global_image_token_id=2)
    processor = SimpleNamespace(tokenizer=tokenizer)
    # The configuration and the tokenizer would come from the hub.
    with (
        mock.patch.object(backbone, "AutoConfig", _from_hub(_backbone_config())),
        mock.patch.object(backbone, "AutoProcessor", _from_hub(processor)),
    ):
        return smolvla.VLAFlowMatching(config)


def _from_hub(value: Any) -> Any:
    return SimpleNamespace(from_pretrained=lambda name: value)


def _backbone_config() -> Any:
    from transformers import SmolVLMConfig

    return SmolVLMConfig(
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 64,
            "patch_size": 16,
        },
        text_config={
            "model_type": "llama",
            "hidden_size": _WIDTH,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": _HEAD,
            "vocab_size": 128,
        },
        scale_factor=2,
    )
