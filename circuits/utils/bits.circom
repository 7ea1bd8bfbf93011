pragma circom 2.2.0;

/// @notice Number of bits of a non-negative integer: 0 for 0, and for what counts as negative. Compile time and hints.
function bit_length(x) {
    var n = 0;
    while ((x >> n) > 0) {
        n++;
    }
    return n;
}

/// @title Binary digits
/// @notice Proves that `in` is an integer in 0..2^n - 1 and gives its digits, least significant first.
/// @dev The digits are unique because 2^n <= 2^253 < r; a longer decomposition would have two readings
///      modulo r, so it is refused at compile time (see WordSplit for canonical 254-bit words). Doubling a sum
///      and shifting what is left are cheap for the witness generator; products with 2^i are not.
/// @param in any field element; range checked here
template Bits(n) {
    assert(n <= 253);
    signal input in;
    signal output bit[n];
    var rest = in;
    for (var i = 0; i < n; i++) {
        bit[i] <-- rest & 1;
        bit[i] * (bit[i] - 1) === 0;
        rest >>= 1;
    }
    var sum = 0;
    for (var i = n - 1; i >= 0; i--) {
        sum = sum + sum + bit[i];
    }
    sum === in;
}

/// @title Exact range
/// @notice Proves that `in` is an integer in 0..max.
/// @dev The weights are 1, 2, 4, .. and a last one that makes all of them add up to `max`: every sum of
///      weights lies in 0..max and every integer there is such a sum. The digits need not be unique.
/// @param in any field element; range checked here
template Bounded(max) {
    var n = bit_length(max);  // at most 253: a larger maximum counts as negative
    assert(n >= 1);
    signal input in;
    signal bit[n];
    var last = max - ((1 << (n - 1)) - 1);
    bit[n - 1] <-- in >> (n - 1) ? 1 : 0;
    var sum = bit[n - 1] * last;
    bit[n - 1] * (bit[n - 1] - 1) === 0;
    for (var i = 0; i < n - 1; i++) {
        bit[i] <-- ((in - bit[n - 1] * last) >> i) & 1;
        bit[i] * (bit[i] - 1) === 0;
        sum += bit[i] * (1 << i);
    }
    sum === in;
}

/// @title Comparison of two bounded integers
/// @notice below = 1 if a < b, else 0.
/// @dev Sound only for inputs below 2^n, which is the caller's duty: a - b + 2^n must not wrap.
/// @param a, b integers in 0..2^n - 1; NOT checked here
template LessThanBounded(n) {
    assert(n <= 252);
    signal input a;
    signal input b;
    signal output below;
    component digits = Bits(n + 1);
    digits.in <== a - b + (1 << n);
    below <== 1 - digits.bit[n];
}

/// @title Not zero
/// @notice out = 0 if in = 0, else 1.
/// @param in any field element
template NonZero() {
    signal input in;
    signal output out;
    signal inverse;
    inverse <-- in != 0 ? 1 / in : 0;
    out <== in * inverse;
    in * (1 - out) === 0;
}
