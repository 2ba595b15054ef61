"""Small models with unusual operators, for `record_flop_zoo.py`: `vmap`, gradients of gradients, checkpoints, scans."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812 -- as PyTorch's examples do
from torch import nn
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

Run = Callable[[], torch.Tensor]


def features(*sizes: int) -> torch.Tensor:
    """Return an input that requires a gradient."""
    return torch.randn(*sizes, requires_grad=True)


def applied(model: nn.Module, *inputs: torch.Tensor) -> Run:
    """Return a function that runs a model on inputs and returns its first result."""

    def run() -> torch.Tensor:
        result = model(*inputs)
        return result[0] if isinstance(result, tuple) else result

    return run


class SelectiveScan(nn.Module):
    """A state-space model whose step size depends on the input."""

    def __init__(self, width: int = 16, states: int = 4) -> None:
        super().__init__()
        self.states = states
        self.inside, self.outside = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)
        self.conv = nn.Conv1d(2 * width, 2 * width, 4, groups=2 * width, padding=3)
        self.select, self.step = nn.Linear(2 * width, 2 * states + 2), nn.Linear(2, 2 * width)
        self.decay = nn.Parameter(torch.randn(2 * width, states))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scan a sequence."""
        x, gate = self.inside(x).chunk(2, -1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        step, write, read = self.select(x).split([2, self.states, self.states], -1)
        step = F.softplus(self.step(step))
        kept = torch.exp(torch.einsum("bld,dn->bldn", step, -self.decay.exp()))
        written = torch.einsum("bld,bln,bld->bldn", step, write, x)
        state, results = torch.zeros_like(kept[:, 0]), []
        for at in range(x.shape[1]):
            state = kept[:, at] * state + written[:, at]
            results.append(torch.einsum("bdn,bn->bd", state, read[:, at]))
        return self.outside(torch.stack(results, 1) * F.silu(gate))


class ComputedAgain(torch.autograd.Function):
    """Two matrix products that the backward pass computes again."""

    @staticmethod
    def forward(context: torch.autograd.function.FunctionCtx, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Keep only the inputs."""
        context.save_for_backward(x, weight)
        return torch.tanh(x @ weight) @ weight

    @staticmethod
    def backward(context: torch.autograd.function.FunctionCtx, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Compute the products again, then their gradients."""
        with torch.enable_grad():
            x, weight = (tensor.detach().requires_grad_() for tensor in context.saved_tensors)
            result = torch.tanh(x @ weight) @ weight
        return torch.autograd.grad(result, (x, weight), gradient)


def linear_attention() -> Run:
    """Return attention without softmax; it multiplies keys and values first."""
    query, key, value = features(2, 4, 10, 8), features(2, 4, 10, 8), features(2, 4, 10, 6)

    def run() -> torch.Tensor:
        a, b = F.elu(query) + 1, F.elu(key) + 1
        mixed = torch.einsum("bhnd,bhde->bhne", a, torch.einsum("bhnd,bhne->bhde", b, value))
        return mixed / torch.einsum("bhnd,bhd->bhn", a, b.sum(2))[..., None]

    return run


def tied_head() -> Run:
    """Return a language model whose head shares the embedding's weights."""
    words, body, head = nn.Embedding(50, 16), nn.Linear(16, 16), nn.Linear(16, 50, bias=False)
    head.weight = words.weight
    texts = torch.randint(50, (2, 12))
    return lambda: F.cross_entropy(head(body(words(texts))).flatten(0, 1), texts.flatten())


def packed_sequences() -> Run:
    """Return a GRU over sequences of different lengths."""
    model, x = nn.GRU(8, 16, batch_first=True), features(3, 7, 8)
    return lambda: model(nn.utils.rnn.pack_padded_sequence(x, [7, 5, 2], batch_first=True))[0].data


def fast_path() -> Run:
    """Return the fused attention that inference uses."""
    model, x = nn.MultiheadAttention(32, 4, batch_first=True).eval(), torch.randn(2, 9, 32)

    def run() -> torch.Tensor:
        with torch.inference_mode():
            result = model(x, x, x, need_weights=False)[0]
        return result.clone().requires_grad_()

    return run


def ensemble() -> Run:
    """Return three models that run together in one `torch.vmap`."""
    members = [nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(members)
    x = torch.randn(10, 8)
    return lambda: torch.func.vmap(lambda *own: torch.func.functional_call(members[0], own, (x,)))(parameters, buffers)


def gradients_of_examples() -> Run:
    """Return the gradient of each example."""
    model = nn.Linear(8, 4)
    parameters, x, y = dict(model.named_parameters()), torch.randn(5, 8), torch.randn(5, 4)

    def loss(own: dict[str, torch.Tensor], a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(torch.func.functional_call(model, own, (a[None],)), b[None])

    def run() -> torch.Tensor:
        gradients = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(parameters, x, y)
        return gradients["weight"].detach().requires_grad_()

    return run


def gradient_penalty() -> Run:
    """Return the product of a result and its gradient, as in a gradient penalty; all matrices are square."""
    first, second, x = features(16, 16), features(16, 16), features(16, 16)

    def run() -> torch.Tensor:
        result = torch.tanh(x @ first) @ second
        return torch.autograd.grad(result.sum(), x, create_graph=True)[0] * result

    return run


def layer(width: int = 32) -> nn.Module:
    """Return a layer with attention."""
    return nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)


def checkpoint_in_checkpoint() -> Run:
    """Return three layers in a checkpoint; the second layer is in a nested checkpoint."""
    a, b, c, x = layer(), layer(), layer(), features(2, 6, 32)
    inner = partial(checkpoint, b, use_reentrant=True)
    return lambda: checkpoint(lambda y: c(inner(a(y))), x, use_reentrant=True)


def selective_checkpoint() -> Run:
    """Return a checkpointed layer whose backward pass recomputes every operator except `addmm`."""
    keeping = partial(create_selective_checkpoint_contexts, [torch.ops.aten.addmm.default])
    model, x = layer(), features(2, 6, 32)
    return lambda: checkpoint(model, x, use_reentrant=False, context_fn=keeping)


def compiled_checkpoint() -> Run:
    """Return a compiled layer whose compiled backward pass computes the layer again."""
    model, x = layer(), features(2, 6, 32)
    compiled = torch.compile(lambda y: checkpoint(model, y, use_reentrant=False))
    return lambda: compiled(x)


def automatic_precision() -> Run:
    """Return linear layers that compute in bfloat16."""
    model, x = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8)), features(4, 32)

    def run() -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x)

    return run


def unusual_models() -> dict[str, Run]:
    """Return the models by name."""
    image, volume = features(2, 8, 9, 9), features(1, 4, 5, 6, 7)
    a, b, c = features(3, 4, 5), features(5, 4, 6), features(6, 3)
    left, right = features(3, 6, 8), features(3, 8, 5)
    query, key, value = features(2, 8, 7, 16), features(2, 2, 9, 16), features(2, 2, 9, 16)
    mask, sparse = torch.rand(2, 1, 7, 9) > 0.1, torch.randn(6, 8).relu().to_sparse()  # noqa: PLR2004 -- one in ten
    spectrum = torch.randn(4, 8, 9, dtype=torch.cfloat, requires_grad=True)
    small = [torch.randint(-9, 9, sizes, dtype=torch.int8) for sizes in ((32, 16), (16, 24))]
    return {
        "conv1d_grouped_dilated": applied(nn.Conv1d(8, 16, 5, stride=2, dilation=3, groups=4), features(3, 8, 64)),
        "conv_transposed_3d": applied(nn.ConvTranspose3d(4, 6, 3, 2, 1, 1, dilation=2), volume),
        "conv_transposed_depthwise": applied(nn.ConvTranspose2d(8, 8, 3, stride=2, groups=8), image),
        "lstm_bidirectional": applied(nn.LSTM(8, 16, 2, bidirectional=True), features(7, 3, 8)),
        "lstm_projected": applied(nn.LSTM(8, 16, proj_size=6, batch_first=True), features(3, 7, 8)),
        "packed_sequences": packed_sequences(),
        "selective_scan": applied(SelectiveScan(), features(2, 6, 16)),
        "linear_attention": linear_attention(),
        "einsum_of_three": lambda: torch.einsum("abc,cbd,da->", a, b, c),
        "baddbmm_broadcast": lambda: torch.baddbmm(right[:1, :1], left, right, beta=0.5),
        "addbmm": lambda: torch.addbmm(left[0, :, :5], left, right),
        "attention_masked": lambda: F.scaled_dot_product_attention(query[:, :2], key, value, attn_mask=mask),
        "attention_of_groups": lambda: F.scaled_dot_product_attention(query, key, value, enable_gqa=True),
        "attention_fast_path": fast_path(),
        "tied_head": tied_head(),
        "vmap_product": lambda: torch.vmap(lambda x, y: x @ y)(left, right),
        "vmap_nested": lambda: torch.vmap(lambda x, y: torch.vmap(lambda z: z @ y)(x))(left[:, None], right),
        "vmap_ensemble": ensemble(),
        "gradients_of_examples": gradients_of_examples(),
        "gradient_penalty": gradient_penalty(),
        "checkpoint_in_checkpoint": checkpoint_in_checkpoint(),
        "checkpoint_selective": selective_checkpoint(),
        "checkpoint_by_hand": lambda: ComputedAgain.apply(features(4, 6), features(6, 6)),
        "compiled_layer": applied(torch.compile(layer()), features(2, 6, 32)),
        "compiled_checkpoint": compiled_checkpoint(),
        "fourier": lambda: torch.fft.irfft(
            torch.einsum("bil,iol->bol", torch.fft.rfft(image.flatten(2)[:, :4, :16]), spectrum), n=16
        ),
        "sparse": lambda: torch.sparse.mm(sparse, right[0]),
        "int8": lambda: torch._int_mm(*small).float().requires_grad_(),  # noqa: SLF001 -- PyTorch's product of int8 matrices
        "automatic_precision": automatic_precision(),
    }
