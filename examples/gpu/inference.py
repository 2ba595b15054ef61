"""Text generation with one launch per kernel, and with a CUDA graph, whose capture is also recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from models import Size, Transformer
from recording import DEVICE, Scenario, record
from torch import Tensor
from torch.profiler import record_function

SIZE = Size(width=1024, heads=16, blocks=4, vocabulary=8192, batch=8, tokens=256)
NEW_TOKENS = 6


class Generator:
    """Prefill and decoding steps of a transformer with a cache of keys and values."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = Transformer(SIZE).to(DEVICE, torch.bfloat16).eval()
        self.caches = self.model.empty_caches(SIZE.tokens + NEW_TOKENS)
        self.prompt = torch.randint(0, SIZE.vocabulary, (SIZE.batch, SIZE.tokens), device=DEVICE)
        self.token = self.prompt[:, -1:].clone()
        self.position = torch.tensor([SIZE.tokens], device=DEVICE)

    @torch.no_grad()
    def prefill(self) -> Tensor:
        """Read the prompt."""
        return self.model(self.prompt)[:, -1].argmax(-1)

    @torch.no_grad()
    def decode(self) -> None:
        """Generate one token for each sequence."""
        logits = self.model(self.token, self.caches, self.position)
        self.token.copy_(logits[:, -1].argmax(-1, keepdim=True))

    def generate(self, decode: Callable[[], None]) -> None:
        """Answer the prompt with `NEW_TOKENS` tokens."""
        with record_function(f"prefill bs={SIZE.batch} tokens={SIZE.batch * SIZE.tokens}"):
            self.prefill()
        for _ in range(NEW_TOKENS):
            with record_function(f"decode bs={SIZE.batch}"):
                decode()


def eager() -> Scenario:
    """Return text generation that launches each kernel separately."""
    generator = Generator()
    return Scenario(lambda: generator.generate(generator.decode), {"with_stack": True, "with_modules": True}, steps=1)


def graph_of(generator: Generator) -> torch.cuda.CUDAGraph:
    """Capture a decoding step."""
    graph = torch.cuda.CUDAGraph()
    with record_function(f"capture bs={SIZE.batch}"), torch.cuda.graph(graph):
        generator.decode()
    return graph


def graphs() -> Scenario:
    """Return text generation that replays a CUDA graph in each decoding step."""
    generator = Generator()
    for _ in range(3):
        generator.decode()
    graph = graph_of(generator)
    return Scenario(lambda: generator.generate(graph.replay), {"with_stack": True, "with_modules": True}, steps=1)


def llama() -> Scenario:
    """Return a step that calls the transformers library's `generate` for a small Llama with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415 -- only this scenario needs it

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=8192,
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=4,
        num_attention_heads=16,
        num_key_value_heads=4,
    )
    model = LlamaForCausalLM(config).to(DEVICE, torch.bfloat16).eval()
    prompt = torch.randint(0, 8192, (4, 128), device=DEVICE)

    def step() -> None:
        model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=3, do_sample=False, pad_token_id=0
        )

    return Scenario(step, {"with_stack": True}, steps=1)


def record_capture(folder: Path) -> None:
    """Record the capture of the CUDA graph that `graphs` replays."""
    generator = Generator()
    for _ in range(3):
        generator.decode()
    kept = []
    scenario = Scenario(
        lambda: kept.append(graph_of(generator)), {"with_stack": True, "with_modules": True}, steps=1, warm_up_steps=1
    )
    record(scenario, folder, "capture_rank0")


def scenarios() -> dict[str, Callable[[], Scenario]]:
    """Return {name: function that builds the scenario}."""
    return {"generation": eager, "generation-graphs": graphs, "generation-llama": llama}
