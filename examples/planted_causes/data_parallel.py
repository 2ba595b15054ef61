"""Jobs whose ranks train copies or shards of one model: DDP, FSDP2 and tensor parallelism."""

from __future__ import annotations

import time
from collections.abc import Iterable

import torch
import torch.distributed as dist
from models import VOCABULARY, Transformer
from planting import NOTHING, Planted
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

SAMPLES = 64
BATCH = 2
TOKENS = 16
WIDTH = 32


def ddp(steps: Iterable[int], planted: Planted) -> None:
    """Train copies of one model; the gradients are summed in two buckets during the backward pass."""
    model = DistributedDataParallel(Transformer(WIDTH, planted), bucket_cap_mb=0.04, gradient_as_bucket_view=True)
    train(model, steps, planted)


def fsdp(steps: Iterable[int], planted: Planted) -> None:
    """Train one model whose parameters are sharded over all ranks."""
    model = Transformer(WIDTH, planted)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for module in (model.attention, model.perceptron):
        fully_shard(module, mesh=mesh)
    train(fully_shard(model, mesh=mesh), steps, planted)


def tensor_parallel(steps: Iterable[int], planted: Planted) -> None:
    """Train one model whose perceptron is split over all ranks."""
    model = Transformer(WIDTH, planted)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    parallelize_module(model.perceptron, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    train(model, steps, planted)


class RandomTokens(Dataset[Tensor]):
    """Sequences of random tokens.

    If long sequences are the planted cause of a rank, that rank's sequences are `planted.repeats` times as long.
    """

    def __init__(self, planted: Planted) -> None:
        self.planted = planted
        self.tokens = TOKENS * (planted.repeats if planted.point == "sequence length" and planted.repeats else 1)

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, number: int) -> Tensor:
        self.planted.at("data loading", NOTHING)
        return torch.randint(0, VOCABULARY, (self.tokens + 1,), generator=torch.Generator().manual_seed(number))


def train(model: nn.Module, steps: Iterable[int], planted: Planted) -> None:
    """Run these training steps, and mark the phases of each step in the trace."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer.register_step_pre_hook(lambda *_: planted.at("optimizer", next(model.parameters())))
    loss_function = nn.CrossEntropyLoss()
    batches = iter(DataLoader(RandomTokens(planted), batch_size=BATCH))
    for step in steps:
        tokens = next(batches)
        begin_ns = time.thread_time_ns()
        with record_function("## forward ##"):
            logits = model(tokens[:, :-1])
            loss = loss_function(logits.flatten(0, 1), tokens[:, 1:].flatten())
        with record_function("## backward ##"):
            loss.backward()
        planted.computed_ns[step] = time.thread_time_ns() - begin_ns
        with record_function("## optimizer ##"):
            optimizer.step()
            optimizer.zero_grad()
        planted.at("end of step", logits.detach(), step)
