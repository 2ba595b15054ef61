"""Record four processes that train a small transformer together on the CPU.

    python examples/record_ddp_gloo.py FOLDER

writes one trace file per rank. The processes sum their gradients over gloo. Rank 3 sleeps 20 ms between forward and
backward of every step, so the others wait for it. Needs PyTorch (2.13 was used), but no GPU.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler
from torch.utils.data import DataLoader, Dataset, DistributedSampler

RANKS = 4
STEPS = 6
SLOW_RANK = 3
SLOW_RANK_SLEEP_S = 0.02

VOCABULARY = 512
SAMPLES = 400
TOKENS = 33
BATCH = 4


class Block(nn.Module):
    """Attention and a two-layer perceptron, each after a normalisation and with a residual connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.perceptron_norm = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the hidden state after this block; shape (batch, tokens, width) in and out."""
        normed = self.attention_norm(hidden)
        attended, _ = self.attention(normed, normed, normed, need_weights=False)
        hidden = hidden + attended
        return hidden + self.perceptron(self.perceptron_norm(hidden))


class Transformer(nn.Module):
    """Predicts the next token from the previous tokens."""

    def __init__(self, width: int = 64, heads: int = 4, blocks: int = 3) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of shape (batch, tokens, vocabulary)."""
        hidden = self.embedding(tokens)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)


class RandomTokens(Dataset[Tensor]):
    """Sequences of random tokens, the same in every run."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, number: int) -> Tensor:
        generator = torch.Generator().manual_seed(number)
        return torch.randint(0, VOCABULARY, (TOKENS,), generator=generator)


def main() -> None:
    """Start the processes and wait for them."""
    parser = argparse.ArgumentParser(description="Record a small distributed training job on the CPU.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder for the trace files")
    folder = parser.parse_args().folder
    multiprocessing.spawn(record_rank, (folder,), nprocs=RANKS)
    print(f"{folder}: {len(list(folder.glob('*.pt.trace.json.gz')))} trace files")


def record_rank(rank: int, folder: Path) -> None:
    """Train on one rank, recording steps 2 to 4 with shapes, stacks, modules and memory."""
    join_group(rank)
    model = DistributedDataParallel(Transformer(), bucket_cap_mb=0.2)
    optimizer = torch.optim.AdamW(model.parameters())
    loss_function = nn.CrossEntropyLoss()
    batches = iter(load_batches(rank))
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_modules=True,
        on_trace_ready=tensorboard_trace_handler(str(folder), f"rank{rank}", use_gzip=True),
    ) as profiler:
        for _ in range(STEPS):
            tokens = next(batches)
            with record_function("## forward ##"):
                logits = model(tokens[:, :-1])
                loss = loss_function(logits.flatten(0, 1), tokens[:, 1:].flatten())
            if rank == SLOW_RANK:
                time.sleep(SLOW_RANK_SLEEP_S)
            update(optimizer, loss)
            profiler.step()
    dist.destroy_process_group()


def join_group(rank: int) -> None:
    """Join the process group on this machine.

    Each process uses only one thread, so that the processes do not slow each other down.
    """
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK=str(rank), WORLD_SIZE=str(RANKS))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)


def load_batches(rank: int) -> DataLoader[Tensor]:
    """Return this rank's part of the data."""
    samples = RandomTokens()
    return DataLoader(samples, batch_size=BATCH, sampler=DistributedSampler(samples, RANKS, rank))


def update(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """Run the backward pass, which also sums the gradients over the ranks, and then the optimizer."""
    with record_function("## backward ##"):
        loss.backward()
    with record_function("## optimizer ##"):
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
