"""Tests that layers are found in a sequence of kernels, which the tests write as one letter per kernel."""

from __future__ import annotations

import numpy as np
import pytest

from holotrace.enrich.graph_attribution.repeated_layers import repeated_layers

NAMES = {
    "n": "rms_norm_kernel",
    "N": "fused_add_rms_norm_kernel",
    "q": "gemm_qkv",
    "r": "rotary_embedding_kernel",
    "a": "flash_fwd_kernel",
    "A": "flash_fwd_sliding_window_kernel",
    "o": "gemm_out",
    "g": "gemm_gate_up",
    "s": "act_and_mul_kernel",
    "d": "gemm_down",
    "e": "embedding_kernel",
    "h": "gemm_head",
    "x": "memcpy",
}


def layers_of(sequence: str) -> str:
    """Return one character per kernel: its layer's last digit, or `.` outside layers; empty if no layers are found."""
    numbers = np.array([ord(letter) for letter in sequence], np.int64)
    layers = repeated_layers(numbers, [NAMES.get(letter, f"kernel_{letter}") for letter in sequence])
    return "" if layers is None else "".join("." if layer < 0 else str(layer % 10) for layer in layers.layer)


def expected(prefix: str, layers: list[str], suffix: str) -> str:
    """Return the text that `layers_of` should return for a model with these layers."""
    inside = "".join(str(number % 10) * len(layer) for number, layer in enumerate(layers))
    return "." * len(prefix) + inside + "." * len(suffix)


def check(prefix: str, layers: list[str], suffix: str) -> None:
    """Check that the found layers equal those of the model."""
    assert layers_of(prefix + "".join(layers) + suffix) == expected(prefix, layers, suffix)


def test_embedding_and_head_are_outside_the_layers():
    """A model with an embedding, four equal layers, a final normalisation and a head has four layers."""
    check("e", ["nqraonGsd".replace("n", "N")] * 4, "nh")


def test_a_layer_begins_with_its_normalisation_although_the_first_differs():
    """Each layer begins with its normalisation, even if the first layer runs a different kernel for it.

    The kernels of all later normalisations also add the residual.
    """
    check("e", ["nqraoNgsd", *["NqraoNgsd"] * 5], "Nh")


def test_kernels_that_a_layer_runs_twice_belong_to_it():
    """If each layer runs the same normalisation twice, the second one does not begin a new layer."""
    check("e", ["nqraongsd"] * 3, "nh")


def test_layers_with_different_experts_are_layers():
    """Each layer runs a different number of experts between otherwise equal kernels."""
    check("e", [f"nqraont{'u' * count}d" for count in (3, 1, 4, 2, 5)], "nh")


def test_two_kinds_of_layers_that_take_turns_count_one_by_one():
    """If dense and expert layers, or local and global attention, alternate, each pair is two layers, not one."""
    check("e", ["nqraongsd", "nqraontuuv"] * 3, "nh")
    check("e", ["nqraongsd", "nqraontuuv"] * 3, "h")


def test_without_attention_a_layer_is_what_repeats_exactly():
    """Without attention, each repetition of the same sequence of kernels is a layer.

    The sequence is not split, although both of its halves contain a normalisation followed by a matrix product.
    """
    check("e", ["nqronNod"] * 4, "h")


def test_dense_layers_before_layers_with_experts():
    """The first two of eight layers have no experts."""
    check("e", ["nqraongsd"] * 2 + ["nqraontuuv"] * 6, "nh")


def test_several_passes_through_the_model_count_their_own_layers():
    """The graph runs two decoding steps, and each step has layers 0 to 2."""
    layers = ["nqraongsd"] * 3
    once = expected("e", layers, "nh")
    assert layers_of(("e" + "".join(layers) + "nh") * 2) == once * 2


def test_forward_and_backward_are_two_parts():
    """The graph runs three layers forward, then three backward with different kernels; each pass is a separate part."""
    forward, backward = "e" + "nqraongsd" * 3 + "h", "H" + "DSGNOaRQ" * 3 + "E"
    sequence = forward + backward
    numbers = np.array([ord(letter) for letter in sequence], np.int64)
    layers = repeated_layers(numbers, [NAMES.get(letter, f"kernel_{letter}") for letter in sequence.replace("a", "z")])

    assert layers is not None
    assert layers.part.tolist() == [-1] + [0] * 27 + [-1] * 2 + [1] * 24 + [-1]
    assert layers.layer.max() == 2


@pytest.mark.parametrize("sequence", ["e", "nqraongsd", "nqraongsd" * 2, "abcdefghijkl", "aaaaaaaaaaaa", "abababab"])
def test_what_does_not_repeat_often_enough_has_no_layers(sequence):
    """No layers are found if the model has one or two layers, nothing repeats, or only one or two kernels repeat."""
    assert layers_of(sequence) == ""


def test_a_repetition_in_a_small_part_of_the_graph_is_no_layer():
    """Three repetitions of three kernels among fifty others are not layers."""
    assert layers_of("".join(chr(200 + number) for number in range(50)) + "pqr" * 3) == ""


def test_noise_moves_borders_by_one_kernel_at_most():
    """If extra copies run at random positions, at least 99 % of the model's kernels still have the right layer."""
    layers = ["nqraoNgsd", *["NqraoNgsd"] * 11]
    truth = expected("e", layers, "Nh")
    wrong = []
    for seed in range(100):
        is_noise = np.random.default_rng(seed).random(len(truth)) < 0.05
        noisy = "".join(
            ("x" if noise else "") + letter
            for letter, noise in zip("e" + "".join(layers) + "Nh", is_noise, strict=True)
        )
        found = "".join(layer for layer, letter in zip(layers_of(noisy), noisy, strict=True) if letter != "x")
        wrong.append(sum(one != other for one, other in zip(found, truth, strict=True)))

    assert max(wrong) <= len(layers) + 1
    assert sum(wrong) <= 0.01 * len(wrong) * len(truth)


@pytest.mark.parametrize(("length", "different"), [(2_000, 20), (2_000, 200), (2_000, 1_000), (500, 50)])
def test_random_kernels_have_no_layers(length, different):
    """A few random kernels repeat by chance, but not often enough to be taken for layers."""
    numbers = np.random.default_rng(length + different).integers(0, different, length)

    assert repeated_layers(numbers, ["kernel"] * length) is None
