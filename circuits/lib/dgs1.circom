pragma circom 2.2.0;

include "poseidon.circom";
include "dgs1_table.circom";
include "../utils/bits.circom";

/// @notice Coefficients of a function on n bits in the basis of products of bits (Moebius transform):
///         f(b) = sum over subsets m of coefficient[m] * product of b_i for i in m. Compile time only.
function monomial_coefficients(table) {
    for (var i = 0; i < 7; i++) {
        for (var m = 0; m < 128; m++) {
            if ((m >> i) & 1) {
                table[m] -= table[m - (1 << i)];
            }
        }
    }
    return table;
}

/// @title Canonical low 200 bits of a word
/// @notice Proves word = sum of bit[i] 2^i + high 2^200 over the integers, with all of it below r, and gives
///         the 200 bits.
/// @dev high is proved to lie in 0..(r >> 200) - 1, so low + high 2^200 < (r >> 200) 2^200 <= r and the
///      decomposition is the only one. A word whose high part equals r >> 200 (fewer than one in 2^53) has
///      no witness: the prover reports it.
/// @param word any field element
template WordSplit() {
    signal input word;
    signal output bit[200];
    var low = 0;
    for (var i = 0; i < 200; i++) {
        bit[i] <-- (word >> i) & 1;
        bit[i] * (bit[i] - 1) === 0;
        low += bit[i] * (1 << i);
    }
    component high = Bounded((-1 >> 200) - 1);
    high.in <-- word >> 200;
    word === low + high.in * (1 << 200);
}

/// @title One draw of DGS-1 from 40 bits
/// @notice x = the signed value that the alias table gives for these 5 bytes, in -127..127.
/// @dev The two tables are evaluated as polynomials in the 7 bits of the bin: 15 products for the monomials
///      and 7 a table, instead of a one-hot vector of 128.
/// @param bit digits of the 5 bytes, least significant first; booleans, NOT checked here (WordSplit does)
template Draw() {
    signal input bit[40];
    signal output x;
    var threshold_c[128] = monomial_coefficients(dgs1_thresholds());
    var alias_c[128] = monomial_coefficients(dgs1_aliases());

    // Products of subsets of bits 0..3 (a) and of bits 4..6 (b); entry 0 is the empty product.
    signal a[16];
    signal b[8];
    a[0] <== 1;
    b[0] <== 1;
    for (var i = 0; i < 4; i++) {
        a[1 << i] <== bit[i];
        for (var m = 1; m < (1 << i); m++) {
            a[(1 << i) + m] <== a[m] * bit[i];
        }
    }
    for (var i = 0; i < 3; i++) {
        b[1 << i] <== bit[4 + i];
        for (var m = 1; m < (1 << i); m++) {
            b[(1 << i) + m] <== b[m] * bit[4 + i];
        }
    }
    signal threshold_row[8];
    signal alias_row[8];
    var threshold = 0;
    var alias = 0;
    for (var row = 0; row < 8; row++) {
        var threshold_lc = 0;
        var alias_lc = 0;
        for (var m = 0; m < 16; m++) {
            threshold_lc += threshold_c[16 * row + m] * a[m];
            alias_lc += alias_c[16 * row + m] * a[m];
        }
        threshold_row[row] <== b[row] * threshold_lc;
        alias_row[row] <== b[row] * alias_lc;
        threshold += threshold_row[row];
        alias += alias_row[row];
    }
    var bin = 0;
    for (var i = 0; i < 7; i++) {
        bin += bit[i] * (1 << i);
    }
    var t = 0;
    for (var i = 0; i < 32; i++) {
        t += bit[8 + i] * (1 << i);
    }
    // Both are below 2^32: thresholds by the table, t by its digits.
    component primary = LessThanBounded(32);
    primary.a <== t;
    primary.b <== threshold;
    signal magnitude <== alias + primary.below * (bin - alias);
    x <== magnitude - 2 * bit[7] * magnitude;
}

/// @title Committed-seed discrete Gaussian noise DGS-1
/// @notice z[i] = sum over c of gains[c] * draw number i m + c of the stream of key kappa, in
///         -127 G..127 G with G the sum of the gains.
/// @dev Block b of the stream is the permutation of (0, kappa, b, 9, 0, .., 0); word 0 is never used, the low
///      200 bits of words 1..16 are 5 draws each.
/// @param kappa any field element; the caller binds it to the seed, the beacon and the slot
template Noise(N, m, gains) {
    signal input kappa;
    signal output z[N];
    var draws = N * m;
    var words = (draws + 4) \ 5;
    var blocks = (words + 15) \ 16;
    component block[blocks];
    component split[words];
    component draw[draws];
    for (var n = 0; n < blocks; n++) {
        var used = n < blocks - 1 ? 16 : words - 16 * n;
        block[n] = Permutation(1, used);
        for (var i = 0; i < 17; i++) {
            if (i == 1) {
                block[n].in[i] <== kappa;
            } else {
                block[n].in[i] <== i == 2 ? n : (i == 3 ? 9 : 0);
            }
        }
        for (var i = 0; i < used; i++) {
            split[16 * n + i] = WordSplit();
            split[16 * n + i].word <== block[n].out[i];
        }
    }
    for (var i = 0; i < draws; i++) {
        draw[i] = Draw();
        for (var k = 0; k < 40; k++) {
            draw[i].bit[k] <== split[i \ 5].bit[40 * (i % 5) + k];
        }
    }
    for (var i = 0; i < N; i++) {
        var sum = 0;
        for (var c = 0; c < m; c++) {
            sum += gains[c] * draw[m * i + c].x;
        }
        z[i] <== sum;
    }
}
