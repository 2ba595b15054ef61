"""Small models of the recorded jobs."""

from __future__ import annotations

from planting import Planted
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

VOCABULARY = 128


MICROBATCHES = 4
"""The number of microbatches per pipeline step."""


class Perceptron(nn.Module):
    """Normalisation, two layers and a residual connection. A cause can be planted in its forward or backward pass."""

    def __init__(self, width: int, planted: Planted) -> None:
        super().__init__()
        self.planted = planted
        self.calls = 0
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the hidden state after this block."""
        self.planted.at("forward", hidden, self.calls % MICROBATCHES)
        self.calls += 1
        changed = self.down(nn.functional.gelu(self.up(self.norm(hidden))))
        return self.planted.in_backward(hidden + changed)


class Attention(nn.Module):
    """Causal attention of one head, after a normalisation and with a residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.input = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the hidden state after attention; shape (batch, tokens, width) in and out."""
        query, key, value = self.input(self.norm(hidden)).chunk(3, dim=-1)
        return hidden + self.output(scaled_dot_product_attention(query, key, value, is_causal=True))


class Transformer(nn.Module):
    """Predicts the next token from the previous tokens."""

    def __init__(self, width: int, planted: Planted) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.attention = Attention(width)
        self.perceptron = Perceptron(width, planted)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of shape (batch, tokens, vocabulary)."""
        return self.head(self.perceptron(self.attention(self.embedding(tokens))))
