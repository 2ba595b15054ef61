"""The models that the scenarios train or run."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Size:
    """The dimensions of a transformer and of its batches."""

    width: int = 1024
    heads: int = 16
    blocks: int = 3
    vocabulary: int = 8192
    batch: int = 8
    tokens: int = 512


class Attention(nn.Module):
    """Causal self-attention; during decoding, `cache` contains the keys and values of earlier tokens."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.project_in = nn.Linear(size.width, 3 * size.width, bias=False)
        self.project_out = nn.Linear(size.width, size.width, bias=False)

    def forward(self, hidden: Tensor, cache: Tensor | None = None, position: Tensor | None = None) -> Tensor:
        """Attend from each token to itself and earlier tokens; shape (batch, tokens, width) in and out."""
        batch, tokens, width = hidden.shape
        parts = self.project_in(hidden).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        if cache is None:
            attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            cache[0].index_copy_(2, position, key)
            cache[1].index_copy_(2, position, value)
            seen = (torch.arange(cache.shape[3], device=hidden.device) <= position)[None]
            attended = functional.scaled_dot_product_attention(query, cache[0], cache[1], attn_mask=seen)
        return self.project_out(attended.transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    """Attention and a two-layer perceptron, each after a normalisation and with a residual connection."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(size.width)
        self.attention = Attention(size)
        self.perceptron_norm = nn.LayerNorm(size.width)
        self.perceptron = nn.Sequential(
            nn.Linear(size.width, 4 * size.width), nn.GELU(), nn.Linear(4 * size.width, size.width)
        )

    def forward(self, hidden: Tensor, cache: Tensor | None = None, position: Tensor | None = None) -> Tensor:
        """Return the hidden state after this block."""
        hidden = hidden + self.attention(self.attention_norm(hidden), cache, position)
        return hidden + self.perceptron(self.perceptron_norm(hidden))


class Transformer(nn.Module):
    """Predicts the next token from the previous tokens."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size
        self.embedding = nn.Embedding(size.vocabulary, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.blocks))
        self.head = nn.Linear(size.width, size.vocabulary, bias=False)

    def forward(self, tokens: Tensor, caches: Tensor | None = None, position: Tensor | None = None) -> Tensor:
        """Return logits of shape (batch, tokens, vocabulary)."""
        hidden = self.embedding(tokens)
        for number, block in enumerate(self.blocks):
            hidden = block(hidden, None if caches is None else caches[number], position)
        return self.head(hidden)

    def empty_caches(self, length: int) -> Tensor:
        """Return an empty cache for the keys and values of `length` tokens in every block."""
        size, weight = self.size, self.head.weight
        shape = (size.blocks, 2, size.batch, size.heads, length, size.width // size.heads)
        return torch.zeros(shape, device=weight.device, dtype=weight.dtype)
