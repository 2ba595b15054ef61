"""Tests of the names and sizes of element types."""

from __future__ import annotations

import json

import pytest

from holotrace.enrich.collectives.element_types import common_type, element_bytes, input_bytes, type_name


@pytest.mark.parametrize(
    ("written", "name", "size"),
    [
        ("Float", "float32", 4),
        ("float", "float32", 4),
        ("double", "float64", 8),
        ("c10::Half", "float16", 2),
        ("BFloat16", "bfloat16", 2),
        ("c10::BFloat16", "bfloat16", 2),
        ("long int", "int64", 8),
        ("Long", "int64", 8),
        ("int", "int32", 4),
        ("signed char", "int8", 1),
        ("unsigned char", "uint8", 1),
        ("Byte", "uint8", 1),
        ("bool", "bool", 1),
        ("Float8_e4m3fn", "float8_e4m3fn", 1),
        ("c10::Float8_e5m2", "float8_e5m2", 1),
        ("c10::complex<float>", "complex64", 8),
        ("ComplexDouble", "complex128", 16),
        ("UInt16", "uint16", 2),
        ("TensorList", "TensorList", None),
        ("", "", None),
        (None, None, None),
    ],
)
def test_a_type_has_one_name_and_a_size(written, name, size) -> None:
    """The c10 and C++ names of a type map to the same name and size; an unknown type has size null."""
    assert (type_name(written), element_bytes(written)) == (name, size)


@pytest.mark.parametrize(
    ("dims", "types", "size", "common"),
    [
        ([[4, 5], []], ["float", "Scalar"], 80, "float"),
        ([[4], [2, 2]], ["double", "c10::Half"], 40, None),
        ([[]], ["long int"], 8, "long int"),
        ([[[4], [5]]], ["TensorList"], None, None),
        ([], [], None, None),
    ],
)
def test_tensors_of_known_types_are_counted(dims, types, size, common) -> None:
    """A scalar tensor has one element; a list of tensors has no recorded types, so its size is unknown."""
    assert input_bytes(json.dumps(dims), json.dumps(types)) == size
    assert common_type(json.dumps(types)) == common


def test_without_a_recording_the_size_is_unknown() -> None:
    """If shapes or types were not recorded, the size is null, not 0."""
    assert (input_bytes(None, "[]"), input_bytes("[]", None), common_type(None)) == (None, None, None)
