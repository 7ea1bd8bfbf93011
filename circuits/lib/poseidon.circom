pragma circom 2.2.0;

include "circomlib/circuits/poseidon_constants.circom";

/// @notice Number of partial rounds for a state of t words. Compile time only.
function partial_rounds(t) {
    assert(t == 9 || t == 17);
    return t == 9 ? 63 : 68;
}

/// @title Poseidon permutation of t words (docs/relation.md, "Field and hash")
/// @notice out[i] = word first + i of the permuted state.
/// @dev The constants are circomlib's, in the sparse form of the Poseidon paper's appendix B: three full
///      rounds, one that ends in the dense matrix P, the partial rounds, four full rounds. Linear layers are
///      kept as expressions, so that only the fifth powers become constraints (3 each; 204 at t = 17).
/// @param in the state; any field elements
template Permutation(t, first, count) {
    var partial = partial_rounds(t);
    var boxes = 8 * t + partial;
    signal input in[t];
    signal output out[count];
    var C[boxes] = POSEIDON_C(t);
    var S[partial * (2 * t - 1)] = POSEIDON_S(t);
    var M[t][t] = POSEIDON_M(t);
    var P[t][t] = POSEIDON_P(t);

    signal square[boxes];
    signal fourth[boxes];
    signal fifth[boxes];
    var state[t];
    var mixed[t];
    var box = 0;
    for (var j = 0; j < t; j++) {
        state[j] = in[j] + C[j];
    }
    for (var round = 0; round < 4; round++) {
        for (var j = 0; j < t; j++) {
            square[box] <== state[j] * state[j];
            fourth[box] <== square[box] * square[box];
            fifth[box] <== fourth[box] * state[j];
            state[j] = fifth[box] + C[t * (round + 1) + j];
            box++;
        }
        for (var i = 0; i < t; i++) {
            mixed[i] = 0;
            for (var j = 0; j < t; j++) {
                mixed[i] += (round == 3 ? P[j][i] : M[j][i]) * state[j];
            }
        }
        for (var i = 0; i < t; i++) {
            state[i] = mixed[i];
        }
    }
    for (var round = 0; round < partial; round++) {
        square[box] <== state[0] * state[0];
        fourth[box] <== square[box] * square[box];
        fifth[box] <== fourth[box] * state[0];
        state[0] = fifth[box] + C[5 * t + round];
        box++;
        mixed[0] = 0;
        for (var j = 0; j < t; j++) {
            mixed[0] += S[(2 * t - 1) * round + j] * state[j];
        }
        for (var j = 1; j < t; j++) {
            state[j] += S[(2 * t - 1) * round + t - 1 + j] * state[0];
        }
        state[0] = mixed[0];
    }
    for (var round = 0; round < 4; round++) {
        for (var j = 0; j < t; j++) {
            square[box] <== state[j] * state[j];
            fourth[box] <== square[box] * square[box];
            fifth[box] <== fourth[box] * state[j];
            state[j] = fifth[box];
            if (round < 3) {
                state[j] += C[5 * t + partial + t * round + j];
            }
            box++;
        }
        for (var i = 0; i < t; i++) {
            mixed[i] = 0;
            for (var j = 0; j < t; j++) {
                mixed[i] += M[j][i] * state[j];
            }
        }
        for (var i = 0; i < t; i++) {
            state[i] = mixed[i];
        }
    }
    for (var i = 0; i < count; i++) {
        out[i] <== state[first + i];
    }
}

/// @notice Word 0 of the permutation of 17 words, for hashes of constants. Compile time only.
function permutation_word(in) {
    var C[204] = POSEIDON_C(17);
    var S[2244] = POSEIDON_S(17);
    var M[17][17] = POSEIDON_M(17);
    var P[17][17] = POSEIDON_P(17);
    var state[17];
    var mixed[17];
    for (var j = 0; j < 17; j++) {
        state[j] = in[j] + C[j];
    }
    for (var round = 0; round < 4; round++) {
        for (var j = 0; j < 17; j++) {
            state[j] = state[j] ** 5 + C[17 * (round + 1) + j];
        }
        for (var i = 0; i < 17; i++) {
            mixed[i] = 0;
            for (var j = 0; j < 17; j++) {
                mixed[i] += (round == 3 ? P[j][i] : M[j][i]) * state[j];
            }
        }
        state = mixed;
    }
    for (var round = 0; round < 68; round++) {
        state[0] = state[0] ** 5 + C[85 + round];
        mixed[0] = 0;
        for (var j = 0; j < 17; j++) {
            mixed[0] += S[33 * round + j] * state[j];
        }
        for (var j = 1; j < 17; j++) {
            state[j] += S[33 * round + 16 + j] * state[0];
        }
        state[0] = mixed[0];
    }
    for (var round = 0; round < 4; round++) {
        for (var j = 0; j < 17; j++) {
            state[j] = state[j] ** 5;
            if (round < 3) {
                state[j] += C[153 + 17 * round + j];
            }
        }
        for (var i = 0; i < 17; i++) {
            mixed[i] = 0;
            for (var j = 0; j < 17; j++) {
                mixed[i] += M[j][i] * state[j];
            }
        }
        state = mixed;
    }
    return state[0];
}

/// @title H of the protocol
/// @notice out = word 0 of the permutation of (0, in, zeros): up to 16 inputs, padded with zeros.
/// @dev The padding does not encode n; callers separate domains by a tag in in[0].
/// @param in any field elements
template Hash(n) {
    assert(n >= 1 && n <= 16);
    signal input in[n];
    signal output out;
    component permutation = Permutation(17, 0, 1);
    permutation.in[0] <== 0;
    for (var i = 0; i < 16; i++) {
        if (i < n) {
            permutation.in[i + 1] <== in[i];
        } else {
            permutation.in[i + 1] <== 0;
        }
    }
    out <== permutation.out[0];
}

/// @title HL of the protocol
/// @notice out = h after h = H(10, tag, n) and h = H(h, run) for each run of 15 elements, the last one padded
///         with zeros.
/// @dev The start depends on constants only and is computed by the compiler.
/// @param in any field elements; their encoding is the caller's duty
template ListHash(tag, n) {
    var runs = (n + 14) \ 15;
    signal input in[n];
    signal output out;
    component step[runs];
    var start[17];
    for (var i = 0; i < 17; i++) {
        start[i] = 0;
    }
    start[1] = 10;
    start[2] = tag;
    start[3] = n;
    for (var run = 0; run < runs; run++) {
        step[run] = Hash(16);
        if (run == 0) {
            step[run].in[0] <== permutation_word(start);
        } else {
            step[run].in[0] <== step[run - 1].out;
        }
        for (var i = 0; i < 15; i++) {
            if (15 * run + i < n) {
                step[run].in[i + 1] <== in[15 * run + i];
            } else {
                step[run].in[i + 1] <== 0;
            }
        }
    }
    out <== step[runs - 1].out;
}
