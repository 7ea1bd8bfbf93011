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
    var rest = word;
    for (var i = 0; i < 200; i++) {
        bit[i] <-- rest & 1;
        bit[i] * (bit[i] - 1) === 0;
        rest >>= 1;
    }
    var low = 0;
    for (var i = 199; i >= 0; i--) {
        low = low + low + bit[i];
    }
    component high = Bounded((-1 >> 200) - 1);
    high.in <-- word >> 200;
    word === low + high.in * (1 << 200);
}

/// @title One table of 128 entries, looked up at a bin
/// @notice value = table[bin], for the bin whose 7 bits gave the products a and b.
/// @dev The table as a polynomial in the bits: 7 products, instead of a one-hot vector of 128.
/// @param a, b outputs of BinProducts; NOT checked here
template Lookup(coefficients) {
    signal input a[16];
    signal input b[8];
    signal output value;
    signal row[8];
    var sum = 0;
    for (var i = 0; i < 8; i++) {
        var coefficient_row = 0;
        for (var m = 0; m < 16; m++) {
            coefficient_row += coefficients[16 * i + m] * a[m];
        }
        row[i] <== b[i] * coefficient_row;
        sum += row[i];
    }
    value <== sum;
}

/// @title Products of the bits of a bin
/// @notice a[m] = product of the bits in subset m of bits 0..3, b[m] likewise of bits 4..6; entry 0 is 1.
/// @param bit booleans; NOT checked here
template BinProducts() {
    signal input bit[7];
    signal output a[16];
    signal output b[8];
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
}

/// @notice High or low 16 bits of the table's thresholds. Compile time only.
function threshold_halves(high) {
    var table[128] = dgs1_thresholds();
    for (var j = 0; j < 128; j++) {
        table[j] = high ? table[j] >> 16 : table[j] & 65535;
    }
    return table;
}

/// @title One draw of DGS-1 from 40 bits
/// @notice x = the signed value that the alias table gives for these 5 bytes, in -127..127.
/// @dev t < T is decided on the high halves if they differ and on the low halves if not: half the digits of
///      a comparison of 32 bits for one lookup more.
/// @param bit digits of the 5 bytes, least significant first; booleans, NOT checked here (WordSplit does)
template Draw() {
    signal input bit[40];
    signal output x;
    component products = BinProducts();
    var bin = 0;
    for (var i = 0; i < 7; i++) {
        products.bit[i] <== bit[i];
        bin += bit[i] * (1 << i);
    }
    var t_low = 0;
    var t_high = 0;
    for (var i = 0; i < 16; i++) {
        t_low += bit[8 + i] * (1 << i);
        t_high += bit[24 + i] * (1 << i);
    }
    component threshold_low = Lookup(monomial_coefficients(threshold_halves(0)));
    component threshold_high = Lookup(monomial_coefficients(threshold_halves(1)));
    component alias = Lookup(monomial_coefficients(dgs1_aliases()));
    threshold_low.a <== products.a;
    threshold_low.b <== products.b;
    threshold_high.a <== products.a;
    threshold_high.b <== products.b;
    alias.a <== products.a;
    alias.b <== products.b;

    // All halves are below 2^16: the thresholds' by the table, t's by their digits.
    component differ = NonZero();
    differ.in <== t_high - threshold_high.value;
    signal difference <== t_low - threshold_low.value
        + differ.out * (t_high - threshold_high.value - t_low + threshold_low.value);
    component not_below = Bits(17);
    not_below.in <== difference + 65536;
    signal magnitude <== bin + not_below.bit[16] * (alias.value - bin);
    x <== magnitude - 2 * bit[7] * magnitude;
}

/// @title Committed-seed discrete Gaussian noise DGS-1
/// @notice z[i] = sum over c of gains[c] * draw number i m + c of the stream of key kappa, in
///         -127 G..127 G with G the sum of the gains.
/// @dev Block b of the stream is the permutation of (0, kappa, b, 9, 0, .., 0); word 0 is never used, the low
///      200 bits of words 1..16 are 5 draws each.
/// @param kappa any field element; the caller binds it to the seed, the beacon and the slot
template Noise(N, m, gains) {
    assert(1 <= N && 1 <= m && m <= 6);
    for (var c = 0; c < m; c++) {
        assert(1 <= gains[c] && gains[c] <= 32768);
    }
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
        block[n] = Permutation(17, 1, used);
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
