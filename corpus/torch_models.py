# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers and timm at small sizes with random weights: one function each, by its name in `MODELS`.

A function takes a size and returns a module and its arguments by name. The module of each size is the same: the sizes
of arguments alone differ. `DYNAMIC` says which axes of the arguments those are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch


def _declare_ops_of_torchvision() -> list[Any]:
    """Declare what torchvision looks for when it is imported, where its library is for another build of PyTorch."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return [library]
    except ImportError:
        pass
    return []


_LIBRARIES = _declare_ops_of_torchvision()
"""Declarations hold for as long as these objects live."""


class Case(NamedTuple):
    """A module, its arguments, and which of their axes are sizes that vary, by names."""

    module: Any
    arguments: dict[str, Any]
    dynamic: dict[str, dict[int, str]]


MODELS: dict[str, Callable[[int], Case]] = {}
"""From a name to what builds the module and its arguments at a size, an integer from 0 on."""

TRAINED = ("bert", "gpt2", "llama", "t5", "whisper", "vit", "convnext", "resnet")
"""The models that are tried in training, too."""

_TEXT = ((2, 9), (3, 14), (1, 6), (4, 21))
_IMAGES = ((2, 64, 96), (3, 96, 64), (1, 128, 64), (2, 160, 96))
_SOUNDS = ((2, 1600), (3, 2403), (1, 3000), (2, 4001))


def _model(build: Callable[[int], Case]) -> Callable[[int], Case]:
    MODELS[build.__name__.removeprefix("_")] = build
    return build


class First(torch.nn.Module):
    """A model of transformers that is called by position: `names` are those of its arguments. Returns a tensor."""

    def __init__(self, model: Any, *names: str, **fixed: Any):
        super().__init__()
        self.model = model
        self.names = names
        self.fixed = fixed

    def forward(self, first: Any, second: Any = None, third: Any = None) -> Any:
        """The first result."""
        arguments = dict(zip(self.names, (first, second, third), strict=False))
        found = self.model(**arguments, **self.fixed, return_dict=False)
        return found[0] if isinstance(found, tuple) else found


def _seeded(make: Callable[[], Any]) -> Any:
    torch.manual_seed(0)
    return make().eval()


def _tokens(size: int, vocabulary: int = 99) -> torch.Tensor:
    torch.manual_seed(size + 1)
    return torch.randint(3, vocabulary, _TEXT[size])


def _text(module: Any, size: int, *others: str, **fixed: Any) -> Case:
    """A model of tokens and a mask of padding, of which the first row has some."""
    tokens = _tokens(size)
    mask = torch.ones_like(tokens)
    mask[0, -2:] = 0
    arguments = {"input_ids": tokens, "attention_mask": mask}
    arguments |= {name: _tokens(size)[:, : 3 + size] for name in others}
    dynamic = {name: {0: "b", 1: "t"} for name in ("input_ids", "attention_mask")}
    dynamic |= {name: {0: "b", 1: "u"} for name in others}
    return Case(First(module, *arguments, **fixed), arguments, dynamic)


def _decoder(config: Any, model: Any, size: int) -> Case:
    return _text(_seeded(lambda: model(config)), size, use_cache=False)


def _image(module: Any, size: int, name: str = "pixel_values", **fixed: Any) -> Case:
    torch.manual_seed(size + 1)
    b, h, w = _IMAGES[size]
    wrapped = First(module, name, **fixed) if name == "pixel_values" else module
    return Case(wrapped, {name: torch.randn(b, 3, h, w)}, {name: {0: "b", 2: "h", 3: "w"}})


# ---- transformers ---------------------------------------------------------------------------------------------------


@_model
def bert(size: int) -> Case:
    """An encoder with a mask."""
    import transformers as hf

    config = hf.BertConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                           intermediate_size=48)  # fmt: skip
    return _text(_seeded(lambda: hf.BertForMaskedLM(config)), size)


@_model
def gpt2(size: int) -> Case:
    """A decoder with learned positions."""
    import transformers as hf

    config = hf.GPT2Config(vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4)
    return _decoder(config, hf.GPT2LMHeadModel, size)


@_model
def llama(size: int) -> Case:
    """A decoder with rotary embeddings and shared keys."""
    import transformers as hf

    config = hf.LlamaConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                            num_key_value_heads=2, intermediate_size=48)  # fmt: skip
    return _decoder(config, hf.LlamaForCausalLM, size)


@_model
def qwen_moe(size: int) -> Case:
    """A decoder with experts, and one expert that all tokens share."""
    import transformers as hf

    config = hf.Qwen2MoeConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                               num_key_value_heads=2, intermediate_size=48, moe_intermediate_size=24,
                               shared_expert_intermediate_size=24, num_experts=4, num_experts_per_tok=2)  # fmt: skip
    return _decoder(config, hf.Qwen2MoeForCausalLM, size)


@_model
def mixtral(size: int) -> Case:
    """A decoder with experts."""
    import transformers as hf

    config = hf.MixtralConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                              num_key_value_heads=2, intermediate_size=48, num_local_experts=4)  # fmt: skip
    return _decoder(config, hf.MixtralForCausalLM, size)


@_model
def t5(size: int) -> Case:
    """An encoder and a decoder with relative positions."""
    import transformers as hf

    config = hf.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
    module = _seeded(lambda: hf.T5ForConditionalGeneration(config))
    return _text(module, size, "decoder_input_ids", use_cache=False)


@_model
def bart(size: int) -> Case:
    """An encoder and a decoder with learned positions."""
    import transformers as hf

    config = hf.BartConfig(vocab_size=99, max_position_embeddings=64, d_model=32, encoder_layers=2, decoder_layers=2,
                           encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
                           decoder_ffn_dim=48)  # fmt: skip
    module = _seeded(lambda: hf.BartForConditionalGeneration(config))
    return _text(module, size, "decoder_input_ids", use_cache=False)


@_model
def whisper(size: int) -> Case:
    """A model of audio of one length, and of text."""
    import transformers as hf

    config = hf.WhisperConfig(vocab_size=99, num_mel_bins=16, d_model=32, encoder_layers=2, decoder_layers=2,
                              encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
                              decoder_ffn_dim=48, max_source_positions=30, max_target_positions=40, pad_token_id=0,
                              bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)  # fmt: skip
    module = _seeded(lambda: hf.WhisperForConditionalGeneration(config))
    tokens = _tokens(size)
    arguments = {"input_features": torch.randn(len(tokens), 16, 60), "decoder_input_ids": tokens}
    dynamic = {"input_features": {0: "b"}, "decoder_input_ids": {0: "b", 1: "t"}}
    return Case(First(module, *arguments, use_cache=False), arguments, dynamic)


@_model
def clip(size: int) -> Case:
    """A model of pictures and text; the result is the similarity of each pair."""
    import transformers as hf

    config = hf.CLIPConfig(
        text_config={"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                     "intermediate_size": 48, "max_position_embeddings": 64, "eos_token_id": 2},
        vision_config={"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
                       "image_size": 32, "patch_size": 8},
        projection_dim=16,
    )  # fmt: skip
    case = _text(_seeded(lambda: hf.CLIPModel(config)), size)
    pictures = torch.randn(size + 5, 3, 32, 32)
    arguments = {**case.arguments, "pixel_values": pictures}
    return Case(First(case.module.model, *arguments), arguments, {**case.dynamic, "pixel_values": {0: "p"}})


@_model
def mamba(size: int) -> Case:
    """A state space model, whose recurrence is a loop over the text."""
    import transformers as hf

    config = hf.MambaConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=8)
    module = First(_seeded(lambda: hf.MambaForCausalLM(config)), "input_ids", use_cache=False)
    return Case(module, {"input_ids": _tokens(size)}, {"input_ids": {0: "b", 1: "t"}})


@_model
def deberta(size: int) -> Case:
    """An encoder with disentangled attention."""
    import transformers as hf

    config = hf.DebertaV2Config(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                intermediate_size=48, relative_attention=True, pos_att_type=["p2c", "c2p"],
                                max_relative_positions=16, position_buckets=8)  # fmt: skip
    return _text(_seeded(lambda: hf.DebertaV2Model(config)), size)


@_model
def wav2vec2(size: int) -> Case:
    """A model of audio."""
    import transformers as hf

    config = hf.Wav2Vec2Config(vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                               intermediate_size=48, conv_dim=(16, 16, 16), conv_stride=(5, 4, 2),
                               conv_kernel=(10, 8, 4), num_conv_pos_embeddings=16,
                               num_conv_pos_embedding_groups=2)  # fmt: skip
    module = First(_seeded(lambda: hf.Wav2Vec2ForCTC(config)), "input_values")
    torch.manual_seed(size + 1)
    return Case(module, {"input_values": torch.randn(_SOUNDS[size])}, {"input_values": {0: "b", 1: "t"}})


@_model
def segformer(size: int) -> Case:
    """A model that assigns a class to each point of a picture."""
    import transformers as hf

    config = hf.SegformerConfig(num_encoder_blocks=4, depths=[1, 1, 1, 1], sr_ratios=[8, 4, 2, 1],
                                hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 1, 2, 2],
                                decoder_hidden_size=16, num_labels=5)  # fmt: skip
    return _image(_seeded(lambda: hf.SegformerForSemanticSegmentation(config)), size)


@_model
def detr(size: int) -> Case:
    """A model of pictures, on a small ResNet."""
    import transformers as hf

    backbone = hf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 16, 24], depths=[1, 1, 1, 1],
                               layer_type="basic", out_features=["stage4"])  # fmt: skip
    config = hf.DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
                           backbone_config=backbone, d_model=32, encoder_layers=1, decoder_layers=1,
                           encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
                           decoder_ffn_dim=48, num_queries=5)  # fmt: skip
    return _image(_seeded(lambda: hf.DetrForObjectDetection(config)), size)


# ---- timm -----------------------------------------------------------------------------------------------------------


def _timm(size: int, name: str, **options: Any) -> Case:
    import timm

    return _image(_seeded(lambda: timm.create_model(name, pretrained=False, num_classes=7, **options)), size, "x")


@_model
def vit(size: int) -> Case:
    """A model of pictures of any size."""
    return _timm(size, "vit_tiny_patch16_224", dynamic_img_size=True, depth=2, embed_dim=48, num_heads=3)


@_model
def convnext(size: int) -> Case:
    """A network of convolutions over each channel."""
    return _timm(size, "convnext_atto", depths=(1, 1, 2, 1), dims=(8, 16, 24, 32))


@_model
def efficientnet(size: int) -> Case:
    """A network of inverted bottlenecks and squeezed excitations."""
    return _timm(size, "test_efficientnet")


@_model
def swin(size: int) -> Case:
    """A model with shifted windows; the size of pictures is fixed."""
    case = _timm(size, "swin_tiny_patch4_window7_224", img_size=64, window_size=4, embed_dim=24, depths=(2, 2),
                 num_heads=(2, 4))  # fmt: skip
    return Case(case.module, {"x": torch.randn(size + 2, 3, 64, 64)}, {"x": {0: "b"}})


@_model
def resnet(size: int) -> Case:
    """A network of residual convolutions and batch normalisation."""
    return _timm(size, "test_resnet")


@_model
def maxvit(size: int) -> Case:
    """A network of convolutions, windows and grids; heights and widths are multiples of the window."""
    case = _timm(size, "maxvit_rmlp_pico_rw_256", img_size=64, depths=(1, 1), embed_dim=(32, 64), stem_width=16)
    return Case(case.module, {"x": torch.randn(size + 2, 3, 64, 64)}, {"x": {0: "b"}})
