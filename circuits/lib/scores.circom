pragma circom 2.2.0;

include "slots.circom";
include "../utils/bits.circom";

/// @title int4 components of one packed element
/// @notice Proves that `packed` holds `count` nibbles, least significant first, each a component + 8, and
///         the padding nibble 8 in the rest of its 63 places; `value` holds the components.
/// @dev 63 nibbles are 252 bits, so the digits are unique. Nibble 0 (component -8) is admitted; every range
///      that depends on components allows for it.
/// @param packed any field element; checked here
template Nibbles(count) {
    signal input packed;
    signal output value[count];
    var padding = 0;
    for (var i = count; i < 63; i++) {
        padding += 8 * (1 << (4 * i));
    }
    component digits = Bits(4 * count);
    digits.in <== packed - padding;
    for (var i = 0; i < count; i++) {
        var at = 4 * i;
        value[i] <== digits.bit[at] + 2 * digits.bit[at + 1] + 4 * digits.bit[at + 2] + 8 * digits.bit[at + 3] - 8;
    }
}

/// @notice Largest h for which a scaled score's quotient may lie in (-(h + 1) R)..(h + 1) R - 1: enough for
///         every score of d components in -8..7, which lies in -56 d..64 d.
/// @dev Outside the asserted bounds a division would be one of residues: with lo above 64 d the quotients would get
///      nearly the whole field, and every score could be any. Each number here and in the templates is below 2^46.
function quotient_groups(d, lo, hi, R) {
    assert(1 <= d && d <= 4096);
    assert(0 <= lo && lo < hi && hi <= 64 * d);
    assert(1 <= R && R <= 1 << 24);
    var width = hi - lo;
    assert(width >= 2);
    var above = ((64 * d - lo) * R + width \ 2) \ width;
    var below = ((56 * d + lo) * R) \ width + 1;
    var h = above \ R;
    if (below \ R > h) {
        h = below \ R;
    }
    return h > 0 ? h : 1;
}

/// @notice What `scaled` may be in Quantise: offset - quotient_reach .. offset + quotient_reach - 1.
function quotient_reach(d, lo, hi, R) {
    return (hi - lo) * (quotient_groups(d, lo, hi, R) + 1) * R;
}

/// @notice R s at the lattice's point 0, less what rounds to the nearest.
function quotient_offset(lo, hi, R) {
    return lo * R - (hi - lo) \ 2;
}

/// @notice Bits of a slot: a power of two above the difference of any two values that a slot may hold, the
///         scaled score R s on one side and width * quotient + remainder + offset on the other.
function slot_bits(d, lo, hi, R) {
    var reach = quotient_reach(d, lo, hi, R);
    var offset = quotient_offset(lo, hi, R);
    var up = reach + offset + R * 56 * d;
    var down = R * 64 * d + reach - offset;
    return bit_length(up > down ? up : down);
}

/// @title Clamp and scale one score
/// @notice u = floor(((clamp(s, lo, hi) - lo) R + floor((hi - lo) / 2)) / (hi - lo)) for scaled = R s,
///         and `scaled` is an integer in offset - reach .. offset + reach - 1 (quotient_offset, quotient_reach).
/// @dev The floor comes first and the clamp after it: the quotient of s is quotient = low + R high, and
///      clamping to 0..R is reading off its sign, whether high is zero, and low. The remainder's range is
///      exact, so the quotient is the floor.
/// @param scaled any field element; range checked here. That it is R times an integer is the caller's duty.
template Quantise(d, lo, hi, R) {
    var h = quotient_groups(d, lo, hi, R);
    var width = hi - lo;
    var offset = quotient_offset(lo, hi, R);
    var log_R = bit_length(R) - 1;
    assert(R == 1 << log_R);
    signal input scaled;
    signal output u;

    // In hints: shift by (h + 1) R whole quotients, so that the division is one of natural numbers.
    var shifted = (scaled - offset + width * (h + 1) * R) \ width;
    component remainder = Bounded(width - 1);
    remainder.in <-- (scaled - offset + width * (h + 1) * R) % width;
    // The quotient is -1 - .. if not positive: high = more if positive, more - h - 1 if not, with more in 0..h.
    signal positive <-- shifted >= (h + 1) * R ? 1 : 0;
    positive * (positive - 1) === 0;
    component more = Bounded(h);
    more.in <-- positive == 1 ? shifted \ R - (h + 1) : shifted \ R;
    component low = Bits(log_R);
    low.in <-- shifted % R;
    scaled === width * (low.in + R * (more.in + (h + 1) * (positive - 1))) + remainder.in + offset;

    component over = NonZero();
    over.in <== more.in;
    signal capped <== low.in + over.out * (R - low.in);
    u <== positive * capped;
}

/// @title An index's components, one slot a position
/// @notice packed[g][j] = sum over the positions i of group g of e_ij 2^(W (i - G g)).
/// @dev The components' digits are the dearest part of `retrieve`, and the part that several records share.
/// @param index dense nibble stream of N d components; checked here
template PackedRows(N, d, W, G) {
    var elements = (N * d + 62) \ 63;
    var groups = (N + G - 1) \ G;
    signal input index[elements];
    signal output packed[groups][d];

    component e[elements];
    for (var n = 0; n < elements; n++) {
        e[n] = Nibbles(n < elements - 1 ? 63 : N * d - 63 * n);
        e[n].packed <== index[n];
    }
    var shift = 1 << W;
    for (var g = 0; g < groups; g++) {
        var last = (g + 1) * G < N ? (g + 1) * G - 1 : N - 1;
        for (var j = 0; j < d; j++) {
            var sum = 0;
            for (var i = last; i >= g * G; i--) {
                var n = i * d + j;
                sum = sum * shift + e[n \ 63].value[n % 63];
            }
            packed[g][j] <== sum;
        }
    }
}

/// @title Quantised scores of all positions
/// @notice u[i] = the policy's quantiser on <q, e_i>, for the rows in `packed` and the vector in `query`.
/// @dev sum over j of q_j packed_gj holds G positions' scores, each in -56 d..64 d, and costs d products. R times that
///      sum must equal the scaled scores slot by slot.
/// @param packed outputs of PackedRows with W = slot_bits(..) and G = 252 \ W; NOT checked here
/// @param query nibbles of d components; checked here
template Scores(N, d, lo, hi, R) {
    var W = slot_bits(d, lo, hi, R);
    var G = 252 \ W;
    var groups = (N + G - 1) \ G;
    var elements = (d + 62) \ 63;
    var reach = quotient_reach(d, lo, hi, R);
    var offset = quotient_offset(lo, hi, R);
    signal input packed[groups][d];
    signal input query[elements];
    signal output u[N];

    component q[elements];
    for (var n = 0; n < elements; n++) {
        q[n] = Nibbles(n < elements - 1 ? 63 : d - 63 * n);
        q[n].packed <== query[n];
    }
    component quantised[N];
    component equal[groups];
    signal product[groups][d];
    for (var g = 0; g < groups; g++) {
        var sum = 0;
        for (var j = 0; j < d; j++) {
            product[g][j] <== q[j \ 63].value[j % 63] * packed[g][j];
            sum += product[g][j];
        }
        var first = g * G;
        var count = first + G < N ? G : N - first;
        // In hints: scores are at least -56 d, so that with 56 d more a slot holds a natural number below 2^W.
        var raised = sum;
        for (var i = 0; i < count; i++) {
            raised += 56 * d * (1 << (W * i));
        }
        equal[g] = SlotEquality(W, count, -56 * d * R, 64 * d * R, offset - reach, offset + reach - 1);
        equal[g].packed <== R * sum;
        for (var i = 0; i < count; i++) {
            quantised[first + i] = Quantise(d, lo, hi, R);
            quantised[first + i].scaled <-- R * (((raised >> (W * i)) & ((1 << W) - 1)) - 56 * d);
            equal[g].value[i] <== quantised[first + i].scaled;
            u[first + i] <== quantised[first + i].u;
        }
    }
}
