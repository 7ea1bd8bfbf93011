"""Poseidon against circomlib: values printed by circomlibjs 0.1.7, which this project did not write."""

from __future__ import annotations

import pytest

from rag_audit.relation.field import MODULUS
from rag_audit.relation.poseidon import hash_elements, hash_list, parameters, permute

# poseidon(xs, 0, 17) of circomlibjs with xs = 1..16: the whole state after the permutation.
CIRCOMLIB_STATE_1_TO_16 = """
16159a551cbb66108281a48099fff949ae08afd7f1f2ec06de2ffb96b919b765
1264d5c8601e941fea856bfc791659f69d3bf4be2290220c1d94b93375706e96
2fd5c59e96f5228df98caf93b6aed5c5632ab87ce7ef9abba90489fc7410c644
0cf3a887a79c3a0aecd791d105ca313fe682e1b5bb432b0eebe2c6af59eea88c
14bc9522f69d5be57330506903d25597c7489a7283c863fec8bcf747ff1a41f5
010c0810e15f7aa26276f22d32ea447ae217870605ec6a83aa33c73c51a462b6
0e8c097c15b9f29e4f2caf8e5c600a0c87795a574a56e7a197fb7a64e4d0cc9c
2bbc6e6eaf511b517ed021f3896a0cfdc22c518e5f9d0fc7ddb776d57bf53fe4
23805d61e919fc55785bcf0e574c38834ad23bf534ba364cd316ff9c5e40aa44
29f8c3fee33964e0afc33e42544bc00ab95807396c4868b13afd41fa8731cc2d
0f79873cf4e71a442f868e5d5a12fb489a64eb88abaeae9c4e34efde77f98f02
2b2c47729f01d6b7b67fd9a107e767e2a02917f993c80606b9c80510c7709a54
2b446917eb82d83dda0506fe6d478b03a2b35f451b1f998883b728dccff52821
10bc47f38996264d82b39a87b6f668118bceba60af0212b43279cf238fa10ff3
035cf82860cbc78419697a1bbc2d71863ea6c5ac62a13274ed6ffc0e64344843
221d5ce9715487d6c57d479ca4a00e4927112039d0363ee9a5a425d1730bcc8c
0ffa1bd9b53dbedee9ab5742283c8968d0435c3b3a566fcb66ca61ce04a5b5bf
"""
CIRCOMLIB_ZEROS = 6961025786505490270790487869888725702980364259855350215456397845563605340881


def test_permutation_equals_circomlibs() -> None:
    expected = [int(word, 16) for word in CIRCOMLIB_STATE_1_TO_16.split()]
    assert permute([0, *range(1, 17)]) == expected
    assert hash_elements(*range(1, 17)) == expected[0]
    assert hash_elements() == CIRCOMLIB_ZEROS


def test_parameters_are_field_elements_of_the_right_shape() -> None:
    constants, matrix = parameters()
    assert [len(row) for row in constants] == [17] * 76
    assert [len(row) for row in matrix] == [17] * 17
    assert all(0 <= x < MODULUS for row in constants + matrix for x in row)


@pytest.mark.parametrize("size", [0, 16, 18])
def test_state_of_another_width_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="17 elements"):
        permute([0] * size)


def test_list_hash_binds_length_tag_and_order() -> None:
    base = hash_list(4, [1, 2, 3])
    others = [
        hash_list(5, [1, 2, 3]),
        hash_list(4, [1, 2, 3, 0]),
        hash_list(4, [2, 1, 3]),
        hash_list(4, [0, 1, 2, 3]),
    ]
    assert base not in others
    assert len(set(others)) == len(others)
