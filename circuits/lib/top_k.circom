pragma circom 2.2.0;

include "slots.circom";
include "../utils/bits.circom";

/// @notice values[index], or 0 where there is none. Hints only.
function pick(values, n, index) {
    var value = 0;
    for (var i = 0; i < n; i++) {
        if (i == index) {
            value = values[i];
        }
    }
    return value;
}

/// @notice 1 if `value` is among the K `values`, else 0. Hints only.
function contains(values, K, value) {
    var found = 0;
    for (var k = 0; k < K; k++) {
        if (values[k] == value) {
            found = 1;
        }
    }
    return found;
}

/// @title The first K positions in the order "larger y first, then smaller position"
/// @notice Proves that `position` lists exactly those positions, in that order.
/// @dev Positions are handled in N / 8 groups of 8 places. With T the last listed position and
///      excess_i = (y_i - y_T) + [i < T], a position i other than T comes before T in the order if and only
///      if excess_i > 0. The template proves, in this order:
///      1. every listed position is 8 * group + place, and its order key's y-part is in range;
///      2. before[i] = [i < T], as the binary digits of 2^T - 1;
///      3. chosen[i] = 1 exactly for the listed positions, which are distinct, and there the listed y is y_i:
///         the two sides of an equation in slots, one slot a position;
///      4. excess_i <= 0 for every position that is not chosen: nothing better was left out;
///      5. the listed keys decrease strictly: the order, and with 4 that exactly K rows reach the K-th.
/// @param y integers in y_min..y_max; NOT checked here
/// @param position any field elements; checked here: distinct integers in 0..N - 1
template TopK(N, K, y_min, y_max) {
    var groups = N \ 8;
    assert(N == 8 * groups && N <= 1 << 17 && 1 <= K && K <= N);
    assert(-(1 << 32) < y_min && y_min <= y_max && y_max < 1 << 32);
    var y_bits = bit_length(y_max - y_min);
    var n_bits = bit_length(N - 1);
    // A slot holds chosen + 2^f excess, at most `reach` in magnitude. At most K listed positions fall into one slot,
    // so with 2^f > K the count is read off modulo 2^f, and a slot's two sides differ by less than 2^V.
    var f = bit_length(K);
    var V = y_bits + 2 * f + 2;
    var reach = 1 + (1 << (y_bits + f));
    signal input y[N];
    signal input position[K];

    // 1. Listed positions and their y (offset by y_min).
    signal group[K][groups];
    component place[K];
    signal listed[K];
    component listed_range[K];
    var offset_y[N];
    for (var i = 0; i < N; i++) {
        offset_y[i] = y[i] - y_min;
    }
    for (var k = 0; k < K; k++) {
        var count = 0;
        var number = 0;
        for (var c = 0; c < groups; c++) {
            group[k][c] <-- (position[k] >> 3) == c ? 1 : 0;
            group[k][c] * (group[k][c] - 1) === 0;
            count += group[k][c];
            number += c * group[k][c];
        }
        count === 1;
        place[k] = Bits(3);
        place[k].in <== position[k] - 8 * number;
        listed[k] <-- pick(offset_y, N, position[k]);
        listed_range[k] = Bits(y_bits);
        listed_range[k].in <== listed[k];
    }

    // 2. before[i] = [i < T]: 2^T - 1 in groups of 8 digits is 255 below T's group, 2^place - 1 in it.
    signal before[N];
    signal quarter <== (1 + place[K - 1].bit[0]) * (1 + 3 * place[K - 1].bit[1]);
    signal power <== quarter * (1 + 15 * place[K - 1].bit[2]);
    signal partial[groups];
    var later = 1;
    for (var c = 0; c < groups; c++) {
        partial[c] <== group[K - 1][c] * (power - 1);
        later -= group[K - 1][c];
        var digits = 0;
        for (var i = 8 * c; i < 8 * c + 8; i++) {
            before[i] <-- i < position[K - 1] ? 1 : 0;
            before[i] * (before[i] - 1) === 0;
            digits += before[i] * (1 << (i - 8 * c));
        }
        digits === partial[c] + 255 * later;
    }

    // 3. and 4.
    signal chosen[N];
    signal chosen_excess[N];
    component not_better[N];
    component equal[groups];
    for (var c = 0; c < groups; c++) {
        equal[c] = SlotEquality(V, 8, -K * reach, K * reach, -reach, reach);
    }
    for (var i = 0; i < N; i++) {
        chosen[i] <-- contains(position, K, i);
        chosen[i] * (chosen[i] - 1) === 0;
        var excess = offset_y[i] + before[i] - listed[K - 1];
        chosen_excess[i] <== chosen[i] * excess;
        equal[i \ 8].value[i % 8] <== chosen[i] + chosen_excess[i] * (1 << f);
        not_better[i] = Bits(y_bits);
        not_better[i].in <== chosen_excess[i] - excess;
    }
    component earlier[K];
    signal weight_a[K];
    signal weight[K];
    signal value[K];
    signal share[K][groups];
    for (var k = 0; k < K; k++) {
        var excess = 0;
        if (k < K - 1) {
            earlier[k] = LessThanBounded(n_bits);
            earlier[k].a <== position[k];
            earlier[k].b <== position[K - 1];
            excess = listed[k] + earlier[k].below - listed[K - 1];
        }
        weight_a[k] <== (1 + ((1 << V) - 1) * place[k].bit[0]) * (1 + ((1 << (2 * V)) - 1) * place[k].bit[1]);
        weight[k] <== weight_a[k] * (1 + ((1 << (4 * V)) - 1) * place[k].bit[2]);
        value[k] <== weight[k] * (1 + excess * (1 << f));
        for (var c = 0; c < groups; c++) {
            share[k][c] <== group[k][c] * value[k];
        }
    }
    for (var c = 0; c < groups; c++) {
        var listed_here = 0;
        for (var k = 0; k < K; k++) {
            listed_here += share[k][c];
        }
        equal[c].packed <== listed_here;
    }

    // 5. Keys y N + (N - 1 - position) decrease strictly.
    component decreasing[K - 1];
    for (var k = 0; k < K - 1; k++) {
        decreasing[k] = Bits(y_bits + n_bits);
        decreasing[k].in <== (listed[k] - listed[k + 1]) * N + position[k + 1] - position[k] - 1;
    }
}
