pragma circom 2.2.0;

include "poseidon.circom";
include "scores.circom";

/// @title Inner products of all pairs of N vectors
/// @notice For i < j: dot_positive = 1 if <v_i, v_j> >= 0, and then dot_low = <v_i, v_j>; norm[i] = |v_i|^2 < 2^a.
/// @dev Rows are taken R by R: sum over k of (sum_s v_sk 2^(W s)) (sum_t v_tk 2^(R W t)) holds R^2 products in
///      slots of W bits, each offset by 2^(W - 1); R is 4 if 16 slots fit below r, else 3, and rows after the last
///      are zero. A product lies in -56 d..64 d and 64 d <= 2^(W - 1), so a slot
///      overflows only at 64 d = 2^(W - 1), for two vectors that are -8 throughout. Such a vector's own slot, in the
///      block of its rows with themselves, then holds a carry of 0 or 1 and no top bit, which norms are not allowed.
///      Hence no slot overflows in any witness, and R^2 W <= 252 bits below r make the digits unique.
/// @param v components in -8..7; NOT checked here (`Coalition`, through Nibbles)
/// @param a bits of a norm: **checked here**; at most W - 1
template InnerProducts(N, d, a) {
    var W = bit_length(64 * d - 1) + 1;  // at most 19
    assert(4 <= N && N <= 1 << 16 && N % 4 == 0 && 1 <= d && d <= 4096 && 1 <= a && a < W);
    var R = 16 * W <= 252 ? 4 : 3;
    var groups = (N + R - 1) \ R;
    var blocks = groups * (groups + 1) \ 2;
    signal input v[N][d];
    signal output norm[N];
    signal output dot_positive[N * (N - 1) \ 2];
    signal output dot_low[N * (N - 1) \ 2];

    signal product[blocks][d];
    component slots[blocks];
    var block = 0;
    for (var h = 0; h < groups; h++) {
        for (var g = 0; g <= h; g++) {
            var sum = 0;
            for (var k = 0; k < d; k++) {
                var left = 0;
                var right = 0;
                for (var s = 0; s < R; s++) {
                    left += R * g + s < N ? v[R * g + s][k] * (1 << (W * s)) : 0;
                    right += R * h + s < N ? v[R * h + s][k] * (1 << (R * W * s)) : 0;
                }
                product[block][k] <== left * right;
                sum += product[block][k];
            }
            for (var slot = 0; slot < R * R; slot++) {
                sum += 1 << (W * slot + W - 1);
            }
            slots[block] = Bits(R * R * W);
            slots[block].in <== sum;
            for (var s = 0; s < R; s++) {
                for (var t = 0; t < R; t++) {
                    var i = R * g + s;
                    var j = R * h + t;
                    var first = W * (s + R * t);
                    var low = 0;
                    for (var b = 0; b < W - 1; b++) {
                        low += slots[block].bit[first + b] * (1 << b);
                    }
                    if (i < j && j < N) {
                        dot_positive[j * (j - 1) \ 2 + i] <== slots[block].bit[first + W - 1];
                        dot_low[j * (j - 1) \ 2 + i] <== low;
                    }
                    if (i == j && j < N) {
                        slots[block].bit[first + W - 1] === 1;
                        for (var b = a; b < W - 1; b++) {
                            slots[block].bit[first + b] === 0;
                        }
                        norm[i] <== low;
                    }
                }
            }
            block++;
        }
    }
}

/// @title coalition: the certificate of one window (docs/estimator.md, "Certificate")
/// @notice Knows vectors, salts and a label for each of N records such that
///         - cq_i = HL(4, [salt_i, vector_i]), every |vector_i|^2 < 2^a;
///         - a record with same_i = 1 has the label of the record before it: records come account by account, so a
///           label is a function of the account;
///         - two records i < j with compared_ij = 1 and different labels have <v_i, v_j> < 0 or
///           q^2 <v_i, v_j>^2 < p^2 |v_i|^2 |v_j|^2;
///         - for every i, at most c - 1 other records j with the label of i have counted_ij = 1, and at most
///           c_tenant - 1 have tenant_ij = 1;
///         for the lists under statement = HL(11, [ctx, c, c_tenant, cq, mask]).
/// @dev `mask` holds, least significant bit first and 252 an element: same_0, .., same_(N - 1), then for each pair
///      i < j at place j (j - 1) / 2 + i all of compared, of counted and of tenant. The verifier makes them from the
///      ledger: counted says that both are their account's first record, tenant that besides the accounts are of one
///      tenant. A zero vector counts as near to everything: encoders make none. Unused places hold any vector and
///      zeros in `mask`, and take no part.
/// @param p, q theta = p/q; compile time, like N, d and a
/// @param statement public; the other lists are bound by it
/// @param c, c_tenant integers in 1..N: the verifier's duty
/// @param vector nibbles of d components; checked here
/// @param mask any field elements; checked here: bits
/// @param label any field elements; only their equality matters
template Coalition(N, d, p, q, a) {
    assert(0 < p && p < q && q <= 1000);
    var pairs = N * (N - 1) \ 2;
    var vector_elements = (d + 62) \ 63;
    var mask_bits = N + 3 * pairs;
    var mask_elements = (mask_bits + 251) \ 252;
    signal input statement;
    signal input ctx;
    signal input c;
    signal input c_tenant;
    signal input cq[N];
    signal input mask[mask_elements];
    signal input salt[N];
    signal input vector[N][vector_elements];
    signal input label[N];

    component statement_hash = ListHash(11, 3 + N + mask_elements);
    statement_hash.in[0] <== ctx;
    statement_hash.in[1] <== c;
    statement_hash.in[2] <== c_tenant;
    for (var i = 0; i < N; i++) {
        statement_hash.in[3 + i] <== cq[i];
    }
    component mask_digits[mask_elements];
    var bit[mask_bits];
    for (var n = 0; n < mask_elements; n++) {
        statement_hash.in[3 + N + n] <== mask[n];
        var size = n < mask_elements - 1 ? 252 : mask_bits - 252 * n;
        mask_digits[n] = Bits(size);
        mask_digits[n].in <== mask[n];
        for (var b = 0; b < size; b++) {
            bit[252 * n + b] = mask_digits[n].bit[b];
        }
    }
    statement === statement_hash.out;

    component vector_hash[N];
    component nibbles[N][vector_elements];
    component products = InnerProducts(N, d, a);
    for (var i = 0; i < N; i++) {
        vector_hash[i] = ListHash(4, 1 + vector_elements);
        vector_hash[i].in[0] <== salt[i];
        for (var n = 0; n < vector_elements; n++) {
            var size = n < vector_elements - 1 ? 63 : d - 63 * n;
            vector_hash[i].in[1 + n] <== vector[i][n];
            nibbles[i][n] = Nibbles(size);
            nibbles[i][n].packed <== vector[i][n];
            for (var k = 0; k < size; k++) {
                products.v[i][63 * n + k] <== nibbles[i][n].value[k];
            }
        }
        cq[i] === vector_hash[i].out;
    }

    // Labels: a function of the account.
    for (var i = 1; i < N; i++) {
        bit[i] * (label[i] - label[i - 1]) === 0;
    }

    // Pairs: near ones share a label.
    var apart_bits = bit_length(p * p * ((1 << a) - 1) * ((1 << a) - 1));
    var count_bits = bit_length(N - 1);
    var shift = 1 << (count_bits + 1);
    component different[pairs];
    signal active[pairs];
    signal magnitude[pairs];
    signal square[pairs];
    signal norms[pairs];
    component apart[pairs];
    signal shared[pairs];
    var others[N];
    for (var i = 0; i < N; i++) {
        others[i] = 0;
    }
    for (var j = 1; j < N; j++) {
        for (var i = 0; i < j; i++) {
            var k = j * (j - 1) \ 2 + i;
            different[k] = NonZero();
            different[k].in <== label[j] - label[i];
            active[k] <== bit[N + k] * different[k].out;
            magnitude[k] <== products.dot_positive[k] * products.dot_low[k];
            square[k] <== magnitude[k] * magnitude[k];
            norms[k] <== products.norm[i] * products.norm[j];
            apart[k] = Bits(apart_bits);
            apart[k].in <== active[k] * (p * p * norms[k] - q * q * square[k] - 1);
            shared[k] <== (1 - different[k].out) * (bit[N + pairs + k] + shift * bit[N + 2 * pairs + k]);
            others[i] += shared[k];
            others[j] += shared[k];
        }
    }

    // Sizes: both counts in one equation of two slots.
    component left[N];
    component left_tenant[N];
    component equal[N];
    for (var i = 0; i < N; i++) {
        left[i] = Bits(count_bits);
        left_tenant[i] = Bits(count_bits);
        var counts = c - 1 + shift * (c_tenant - 1) - others[i];
        left[i].in <-- counts % shift;
        left_tenant[i].in <-- (counts - left[i].in) / shift;
        equal[i] = SlotEquality(count_bits + 1, 2, 1 - N, N - 1, 0, (1 << count_bits) - 1);
        equal[i].packed <== counts;
        equal[i].value[0] <== left[i].in;
        equal[i].value[1] <== left_tenant[i].in;
    }
}
