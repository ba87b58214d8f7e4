"""Models of the transformers library, random weights, eval mode."""

import pytest
import torch

from .check import check_model

transformers = pytest.importorskip("transformers", reason="transformers is not installed")


def ids(n, length=8, words=64):
    return torch.randint(3, words, (2, length), generator=torch.Generator().manual_seed(n))


def text(n):
    return {"input_ids": ids(n), "attention_mask": torch.ones(2, 8, dtype=torch.long)}


def no_cache(n):
    return {**text(n), "use_cache": False}


def pixels(n):
    return {"pixel_values": torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(n))}


def t5_inputs(n):
    return {**text(n), "decoder_input_ids": ids(n + 1, 4), "use_cache": False}


def whisper_inputs(n):
    features = torch.randn(2, 8, 40, generator=torch.Generator().manual_seed(n))
    return {"input_features": features, "decoder_input_ids": ids(n, 4), "use_cache": False}


SMALL = dict(vocab_size=64, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
MODELS = {
    "bert": ("BertConfig", "BertModel", SMALL, text),
    "bert_lm": ("BertConfig", "BertForMaskedLM", SMALL, lambda n: {**text(n), "labels": ids(n)}),
    "gpt2": (
        "GPT2Config",
        "GPT2LMHeadModel",
        dict(vocab_size=64, n_embd=16, n_layer=2, n_head=2, n_positions=32),
        no_cache,
    ),
    "llama": ("LlamaConfig", "LlamaForCausalLM", {**SMALL, "num_key_value_heads": 1}, no_cache),
    "t5": (
        "T5Config",
        "T5ForConditionalGeneration",
        dict(vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0),
        t5_inputs,
    ),
    "vit": (
        "ViTConfig",
        "ViTModel",
        dict(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            image_size=16,
            patch_size=4,
        ),
        pixels,
    ),
    "whisper": (
        "WhisperConfig",
        "WhisperForConditionalGeneration",
        dict(
            vocab_size=64,
            d_model=16,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            num_mel_bins=8,
            max_source_positions=20,
            max_target_positions=16,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
        ),
        whisper_inputs,
    ),
    "mixtral": (
        "MixtralConfig",
        "MixtralForCausalLM",
        {**SMALL, "num_key_value_heads": 1, "num_local_experts": 4, "num_experts_per_tok": 2},
        no_cache,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_eval(name):
    config, model, settings, inputs = MODELS[name]
    torch.manual_seed(0)
    check_model(getattr(transformers, model)(getattr(transformers, config)(**settings)), inputs)
