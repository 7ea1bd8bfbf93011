pragma circom 2.2.0;

include "poseidon.circom";
include "slots.circom";
include "../utils/bits.circom";

/// @title One of eight
/// @notice out = value[k] for the k whose binary digits are `bit`: 11 products.
/// @param bit booleans, least significant first; NOT checked here
/// @param value any field elements
template OneOfEight() {
    signal input bit[3];
    signal input value[8];
    signal output out;
    signal product[8];
    product[0] <== 1;
    for (var i = 0; i < 3; i++) {
        product[1 << i] <== bit[i];
        for (var m = 1; m < (1 << i); m++) {
            product[(1 << i) + m] <== product[m] * bit[i];
        }
    }
    // The values as coefficients of products of bits (Moebius transform).
    var coefficient[8];
    for (var m = 0; m < 8; m++) {
        coefficient[m] = value[m];
    }
    for (var i = 0; i < 3; i++) {
        for (var m = 0; m < 8; m++) {
            if ((m >> i) & 1) {
                coefficient[m] -= coefficient[m - (1 << i)];
            }
        }
    }
    signal term[8];
    var sum = 0;
    for (var m = 0; m < 8; m++) {
        term[m] <== product[m] * coefficient[m];
        sum += term[m];
    }
    out <== sum;
}

/// @title One row of the embedder's table
/// @notice Proves that `row` is the row at the index whose digits are `bit` in the table of root `root`.
/// @dev The tree has arity 8 and a fixed depth; a leaf is HL(8, row) and a node Poseidon of its eight children,
///      of different widths, so that neither can stand for the other.
/// @param bit digits of the index, least significant first; booleans, NOT checked here
/// @param row, node any field elements; checked here against `root`
template TableRow(depth, wide) {
    signal input bit[3 * depth];
    signal input row[wide];
    signal input node[depth][8];
    signal input root;
    component leaf = ListHash(8, wide);
    leaf.in <== row;
    component here[depth];
    component parent[depth];
    for (var level = 0; level < depth; level++) {
        here[level] = OneOfEight();
        parent[level] = Permutation(9, 0, 1);
        parent[level].in[0] <== 0;
        for (var k = 0; k < 8; k++) {
            here[level].value[k] <== node[level][k];
            parent[level].in[1 + k] <== node[level][k];
        }
        for (var i = 0; i < 3; i++) {
            here[level].bit[i] <== bit[3 * level + i];
        }
        if (level == 0) {
            here[level].out === leaf.out;
        } else {
            here[level].out === parent[level - 1].out[0];
        }
    }
    parent[depth - 1].out[0] === root;
}

/// @title Integer square root
/// @notice root = floor(sqrt(square)), and root >= 1.
/// @param square an integer in 0..2^(2 n) - 1; NOT checked here
template SquareRoot(n) {
    assert(n <= 100);
    signal input square;
    signal output root;
    root <-- integer_root(square, n);
    component positive = Bits(n);
    positive.in <== root - 1;
    signal rest <== square - root * root;
    component low = Bits(n + 1);
    low.in <== rest;
    component high = Bits(n + 1);
    high.in <== 2 * root - rest;
}

/// @notice floor(sqrt(square)) for square below 2^(2 n). Hints only.
function integer_root(square, n) {
    var root = 0;
    for (var i = n; i >= 0; i--) {
        var next = root + (1 << i);
        if (next * next <= square) {
            root = next;
        }
    }
    return root;
}

/// @notice threshold[k] for a k that is known at proving time. Hints only.
function threshold_at(threshold, k) {
    var found = 0;
    for (var i = 0; i < 9; i++) {
        if (i == k) {
            found = threshold[i];
        }
    }
    return found;
}

/// @title Sum of rows to an int4 unit vector
/// @notice nibble[j] = v_j + 8 with v_j = sign(e_j) min(7, floor((2 |e_j| A + w) / (2 w))),
///         w = isqrt(2^16 sum e_j^2); there is no witness for e = 0.
/// @dev v_j >= k if and only if |e_j| >= t_k = ceil(w (2 k - 1) / (2 A)), so v_j is the k with
///      t_k <= |e_j| < t_{k+1}, t_0 = 0 and t_8 = reach + 1. A wrong sign makes |e_j| negative, which no k
///      allows. Both thresholds are looked up at once, as two slots of `shift` bits.
/// @param e integers in -reach..reach; NOT checked here
template Normalise(d, A, reach) {
    assert(1 <= d && d <= 4096 && 1 <= reach && reach <= 512 && 1 <= A && A <= 1 << 20);
    // w <= 2^8 sqrt(d) reach, and t_7 follows from it.
    var side = 1;
    while (side * side < d) {
        side++;
    }
    var root_max = 256 * side * reach;
    var threshold_max = (root_max * 13 + 2 * A - 1) \ (2 * A);
    var threshold_bits = bit_length(threshold_max > reach + 1 ? threshold_max : reach + 1);
    var shift = threshold_bits + 2;
    var above_bits = bit_length(reach);
    var least = -reach - ((1 << above_bits) - 1);
    var most = reach + (1 << threshold_bits);
    signal input e[d];
    signal output nibble[d];
    var norm = 0;
    signal square[d];
    for (var j = 0; j < d; j++) {
        square[j] <== e[j] * e[j];
        norm += square[j];
    }
    component w = SquareRoot(bit_length(root_max));
    w.square <== 65536 * norm;

    signal threshold[9];
    component threshold_range[7];
    component remainder[7];
    threshold[0] <== 0;
    threshold[8] <== reach + 1;
    for (var k = 1; k < 8; k++) {
        var scaled = w.root * (2 * k - 1) + 2 * A - 1;
        threshold[k] <-- scaled \ (2 * A);
        threshold_range[k - 1] = Bits(threshold_bits);
        threshold_range[k - 1].in <== threshold[k];
        remainder[k - 1] = Bounded(2 * A - 1);
        remainder[k - 1].in <== scaled - 2 * A * threshold[k];
    }

    signal positive[d];
    signal magnitude[d];
    signal signed[d];
    component value[d];
    component step[d];
    component above[d];
    component below[d];
    component equal[d];
    for (var j = 0; j < d; j++) {
        positive[j] <-- e[j] >= 0 ? 1 : 0;
        positive[j] * (positive[j] - 1) === 0;
        magnitude[j] <== (2 * positive[j] - 1) * e[j];
        var steps = 0;
        for (var k = 1; k < 8; k++) {
            steps += magnitude[j] >= threshold[k] ? 1 : 0;
        }
        value[j] = Bits(3);
        value[j].in <-- steps;
        step[j] = OneOfEight();
        for (var i = 0; i < 3; i++) {
            step[j].bit[i] <== value[j].bit[i];
        }
        for (var k = 0; k < 8; k++) {
            step[j].value[k] <== threshold[k] + threshold[k + 1] * (1 << shift);
        }
        above[j] = Bits(above_bits);
        below[j] = Bits(threshold_bits);
        above[j].in <-- magnitude[j] - threshold_at(threshold, steps);
        below[j].in <-- threshold_at(threshold, steps + 1) - 1 - magnitude[j];
        equal[j] = SlotEquality(shift, 2, 0, (1 << threshold_bits) - 1, least, most);
        equal[j].packed <== step[j].out;
        equal[j].value[0] <== magnitude[j] - above[j].in;
        equal[j].value[1] <== magnitude[j] + 1 + below[j].in;
        signed[j] <== (2 * positive[j] - 1) * value[j].in;
        nibble[j] <== signed[j] + 8;
    }
}

/// @title embed: claim A1 of one record (docs/relation.md, "The four claims")
/// @notice Knows tokens and salts such that hq = HL(3, [salt_q, count, packed tokens]) and
///         cq = HL(4, [salt_c, q]) for the q that the table of root `table` gives for these tokens.
/// @dev A row is `wide` elements of 25 slots of 10 bits, each a component + 8; sums of T <= 64 rows stay below
///      2^10 a slot, so they are unpacked once. Unused token places open the zero row `zero_row`. The number of
///      packed tokens enters the list hash by its start, a constant chosen by the count.
/// @param table public; that it is the root of the pinned table, with a zero row at `zero_row`, is for the
///        verifier to check
/// @param count, token any field elements; checked here: 1..T tokens below 8^depth, none in unused places
/// @param ctx public; binds the proof to its record
template Embed(T, d, depth, zero_row, A) {
    assert(1 <= T && T <= 64 && 1 <= depth && depth <= 5);
    assert(0 <= zero_row && zero_row < 1 << (3 * depth));
    var wide = (d + 24) \ 25;
    var packs = (T + 15) \ 16;
    var query_elements = (d + 62) \ 63;
    var slot_bits = bit_length(15 * T);
    signal input ctx;
    signal input table;
    signal input hq;
    signal input cq;
    signal input salt_q;
    signal input salt_c;
    signal input count;
    signal input token[T];
    signal input row[T][wide];
    signal input node[T][depth][8];

    signal ctx_squared <== ctx * ctx;

    // Tokens: used places come first, and unused ones hold token 0.
    signal used[T];
    component index[T];
    component opened[T];
    var total = 0;
    for (var i = 0; i < T; i++) {
        used[i] <-- i < count ? 1 : 0;
        used[i] * (used[i] - 1) === 0;
        if (i > 0) {
            used[i] * (1 - used[i - 1]) === 0;
        }
        total += used[i];
        (1 - used[i]) * token[i] === 0;
        index[i] = Bits(3 * depth);
        index[i].in <== token[i] + (1 - used[i]) * zero_row;
        opened[i] = TableRow(depth, wide);
        opened[i].bit <== index[i].bit;
        opened[i].row <== row[i];
        opened[i].node <== node[i];
        opened[i].root <== table;
    }
    total === count;

    var start = 0;
    component text_hash = Hash(16);
    text_hash.in[1] <== salt_q;
    text_hash.in[2] <== count;
    var constants[17];
    for (var i = 0; i < 17; i++) {
        constants[i] = 0;
    }
    constants[1] = 10;
    constants[2] = 3;
    var previous = 0;
    for (var p = 0; p < 13; p++) {
        var packed = 0;
        if (p < packs) {
            constants[3] = 3 + p;
            var this = permutation_word(constants);
            start += p == 0 ? this : used[16 * p] * (this - previous);
            previous = this;
            for (var i = 16 * p; i < 16 * p + 16 && i < T; i++) {
                packed += token[i] * (1 << (15 * (i - 16 * p)));
            }
        }
        text_hash.in[3 + p] <== packed;
    }
    text_hash.in[0] <== start;
    hq === text_hash.out;

    // Sum of rows, unpacked once; a row's slots are component + 8, in every one of T places.
    component slot[d];
    component equal[wide];
    component normalised = Normalise(d, A, 8 * T);
    for (var k = 0; k < wide; k++) {
        var wide_sum = 0;
        for (var i = 0; i < T; i++) {
            wide_sum += row[i][k];
        }
        var slots = 25 * k + 25 < d ? 25 : d - 25 * k;
        equal[k] = SlotEquality(10, slots, 0, 15 * T, 0, (1 << slot_bits) - 1);
        equal[k].packed <== wide_sum;
        for (var i = 0; i < slots; i++) {
            var j = 25 * k + i;
            slot[j] = Bits(slot_bits);
            slot[j].in <-- (wide_sum >> (10 * i)) & 1023;
            equal[k].value[i] <== slot[j].in;
            normalised.e[j] <== slot[j].in - 8 * T;
        }
    }

    component query_hash = ListHash(4, 1 + query_elements);
    query_hash.in[0] <== salt_c;
    for (var n = 0; n < query_elements; n++) {
        var packed = 0;
        for (var i = 0; i < 63; i++) {
            packed += (63 * n + i < d ? normalised.nibble[63 * n + i] : 8) * (1 << (4 * i));
        }
        query_hash.in[1 + n] <== packed;
    }
    cq === query_hash.out;
}
