"""Record traces and operation counts of small models on the CPU: `python scripts/record_flop_zoo.py FOLDER`.

Needs PyTorch, whose FlopCounterMode counts the floating-point operations. Each model runs forward and backward twice:
once under FlopCounterMode, once under the profiler with `record_shapes=True`. `truth.json` contains the counts;
tests/analyses/roofline/test_flop_zoo.py compares holotrace's counts with them.
"""

from __future__ import annotations

import gzip
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 -- as PyTorch's examples do
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode
from unusual_flop_models import unusual_models

Run = Callable[[], torch.Tensor]

KEPT = ("name", "cat", "ph", "pid", "tid", "ts", "dur", "args", "id", "bp")
ARGS = (
    "Input Dims",
    "Input type",
    "Input Strides",
    "Concrete Inputs",
    "Sequence number",
    "Fwd thread id",
    "External id",
)


def image(channels: int = 3, size: int = 16, batch: int = 2) -> torch.Tensor:
    """Return a batch of images."""
    return torch.randn(batch, channels, size, size, requires_grad=True)


def words(batch: int = 2, length: int = 12, count: int = 50) -> torch.Tensor:
    """Return a batch of sequences of token ids."""
    return torch.randint(count, (batch, length))


def features(*sizes: int) -> torch.Tensor:
    """Return an input that requires a gradient."""
    return torch.randn(*sizes, requires_grad=True)


class Attention(nn.Module):
    """Multi-head attention, or grouped-query attention if `key_heads` is given."""

    def __init__(self, width: int = 32, heads: int = 4, key_heads: int | None = None, *, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.key_heads, self.causal = heads, key_heads or heads, causal
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width * self.key_heads // heads)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, memory: torch.Tensor | None = None) -> torch.Tensor:
        """Attend to `memory` or, if it is None, to the input itself."""
        source = x if memory is None else memory
        query = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        key, value = self.key_value(source).unflatten(-1, (2 * self.key_heads, -1)).transpose(1, 2).chunk(2, dim=1)
        grouped = self.key_heads != self.heads
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal, enable_gqa=grouped)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A transformer block."""

    def __init__(self, width: int = 32, **options: bool) -> None:
        super().__init__()
        self.attention = Attention(width, **options)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply attention, then the MLP, each with a residual connection."""
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Residual(nn.Module):
    """A residual block of convolutions."""

    def __init__(self, inside: int, outside: int, stride: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outside),
            nn.ReLU(),
            nn.Conv2d(outside, outside, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outside),
        )
        self.shortcut = nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add up the outputs of the body and the shortcut."""
        return F.relu(self.body(x) + self.shortcut(x))


class UNet(nn.Module):
    """One level of a U-Net, a convolutional network."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.inner = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 1, 1)
        self.up, self.out = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(11, 3, 3, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Downsample, upsample, and concatenate the result with the input."""
        return self.out(torch.cat([self.up(self.inner(self.down(x).relu()).relu()), x], dim=1))


class VisionTransformer(nn.Module):
    """A vision transformer: patches, blocks, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.blocks, self.head = (
            nn.Conv2d(3, 32, 4, 4),
            nn.Sequential(Block(), Block()),
            nn.Linear(32, 10),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify images."""
        return self.head(self.blocks(self.patches(x).flatten(2).transpose(1, 2)).mean(1))


class LanguageModel(nn.Module):
    """A language model: an embedding, causal blocks, and a head that shares the embedding's weights."""

    def __init__(self, **options: bool) -> None:
        super().__init__()
        self.embedding, self.block = nn.Embedding(50, 32), Block(causal=True, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Predict the next words."""
        return self.block(self.embedding(x)) @ self.embedding.weight.T


class Experts(nn.Module):
    """A mixture of experts that sends each row to one expert."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(32, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 32)) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Send each row to the expert with the highest score."""
        scores, chosen = self.router(x).softmax(-1).max(-1)
        result = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero().squeeze(-1)
            result = result.index_add(0, rows, expert(x[rows]) * scores[rows, None])
        return result


class Bilinear(nn.Module):
    """Dot products of embeddings, as in recommendation models."""

    def __init__(self) -> None:
        super().__init__()
        self.tables, self.top = nn.ModuleList(nn.EmbeddingBag(50, 16, mode="sum") for _ in range(3)), nn.Linear(9, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply every pair of embeddings."""
        stacked = torch.stack([table(x) for table in self.tables], dim=1)
        return self.top(torch.bmm(stacked, stacked.transpose(1, 2)).flatten(1))


def checkpointed(*, reentrant: bool) -> Run:
    """Return two checkpointed blocks, which the backward pass runs again."""
    blocks, x = nn.Sequential(Block(), Block()), features(2, 12, 32)

    def run() -> torch.Tensor:
        result = x
        for block in blocks:
            result = checkpoint(block, result, use_reentrant=reentrant)
        return result

    return run


def applied(model: nn.Module, *inputs: torch.Tensor) -> Run:
    """Return a function that runs a model on inputs and returns its first result."""

    def run() -> torch.Tensor:
        result = model(*inputs)
        return result[0] if isinstance(result, tuple) else result

    return run


def models() -> dict[str, Run]:
    """Return the models by name."""
    sequence, short = features(2, 12, 32), features(2, 5, 32)
    a, b = features(3, 6, 8), features(3, 8, 5)
    conv = {
        "conv1d": (nn.Conv1d(4, 6, 3, padding=1), features(2, 4, 20)),
        "conv2d_strided_dilated": (nn.Conv2d(3, 8, 3, 2, 2, 2), image()),
        "conv3d": (nn.Conv3d(2, 4, 3, padding=1), features(1, 2, 6, 6, 6)),
        "conv_transposed": (nn.ConvTranspose2d(3, 5, 3, 2, 1, 1), image()),
        "conv_grouped": (nn.Conv2d(8, 8, 3, padding=1, groups=4), image(8)),
        "conv_depthwise": (nn.Conv2d(8, 8, 3, padding=1, groups=8), image(8)),
        "conv_separable": (nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 16, 1)), image(8)),
    }
    return {
        "linear": applied(nn.Linear(8, 4), features(5, 8)),
        "linear_without_bias": applied(nn.Linear(8, 4, bias=False), features(2, 5, 8)),
        "mlp": applied(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh()), features(8, 16)),
        "autoencoder": applied(
            nn.Sequential(nn.Linear(64, 16), nn.GELU(), nn.Linear(16, 64), nn.Sigmoid()), features(4, 64)
        ),
        **{name: applied(*model) for name, model in conv.items()},
        "cnn": applied(
            nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 10)), image()
        ),
        "resnet": applied(
            nn.Sequential(Residual(3, 8), Residual(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten()), image()
        ),
        "unet": applied(UNet(), image()),
        "vgg_groupnorm": applied(
            nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.AvgPool2d(2)), image()
        ),
        "attention": applied(Attention(), sequence),
        "attention_causal": applied(Attention(causal=True), sequence),
        "attention_grouped": applied(Attention(key_heads=2), sequence),
        "attention_cross": applied(Attention(), short, sequence),
        "multihead_attention": applied(nn.MultiheadAttention(32, 4, batch_first=True), sequence, sequence, sequence),
        "transformer_block": applied(Block(), sequence),
        "transformer_encoder": applied(
            nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2), sequence
        ),
        "transformer_decoder": applied(nn.TransformerDecoderLayer(32, 4, 64, batch_first=True), short, sequence),
        "language_model": applied(LanguageModel(), words()),
        "vision_transformer": applied(VisionTransformer(), image()),
        "mixture_of_experts": applied(Experts(), features(20, 32)),
        "rnn_cell": applied(nn.RNNCell(8, 16), features(4, 8)),
        "lstm_cell": applied(nn.LSTMCell(8, 16), features(4, 8)),
        "gru_cell": applied(nn.GRUCell(8, 16), features(4, 8)),
        "gru": applied(nn.GRU(8, 16, batch_first=True), features(4, 6, 8)),
        "lstm": applied(nn.LSTM(8, 16, batch_first=True), features(4, 6, 8)),
        "embedding_bags": applied(Bilinear(), words(4)),
        "bilinear": applied(nn.Bilinear(6, 5, 4), features(3, 6), features(3, 5)),
        "einsum": lambda: torch.einsum("bij,bjk->bik", a, b),
        "matmul_batched": lambda: a @ b,
        "baddbmm": lambda: torch.baddbmm(torch.ones(3, 6, 5), a, b),
        "matrix_vector": lambda: a[0] @ b[0, :, 0],
        "layer_norm": applied(nn.LayerNorm(32), sequence),
        "cosine_similarity": lambda: F.cosine_similarity(a, a.flip(0)),
        "checkpoint": checkpointed(reentrant=False),
        "checkpoint_reentrant": checkpointed(reentrant=True),
        **unusual_models(),
    }


def count(run: Run) -> int:
    """Return the floating-point operations that FlopCounterMode counts in one run, forward and backward."""
    with FlopCounterMode(display=False) as counter:
        run().sum().backward()
    return counter.get_total_flops()


def record(run: Run, path: Path) -> None:
    """Write the trace of one run; keep only the events and args that the comparison needs."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        run().sum().backward()
    profiler.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())
    events = [event for event in trace["traceEvents"] if event.get("cat") in {"cpu_op", "fwdbwd", "user_annotation"}]
    for event in events:
        event["args"] = {key: value for key, value in event.get("args", {}).items() if key in ARGS}
    kept = [{key: value for key, value in event.items() if key in KEPT} for event in events]
    text = json.dumps({"schemaVersion": 1, "traceEvents": kept}, separators=(",", ":"))
    path.unlink()
    path.with_suffix(".json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def main() -> None:
    """Record a trace of every model, and write the FLOPs of each model to `truth.json`."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    truth = {}
    for name, run in models().items():
        run().sum().backward()  # the first run also does work that later runs skip, such as compilation
        truth[name] = count(run)
        record(run, folder / f"{name}.json")
    (folder / "truth.json").write_text(json.dumps({"torch": torch.__version__, "flops": truth}, indent=1) + "\n")


if __name__ == "__main__":
    main()
