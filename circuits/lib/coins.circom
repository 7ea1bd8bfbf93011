pragma circom 2.2.0;

include "dgs1.circom";
include "poseidon.circom";
include "../utils/bits.circom";

// Two tags say what a signal holds. The compiler refuses a signal without the tag, or with another width, wherever a
// template asks for it, and only the templates of this file give them, each beside the constraints that earn it:
//   {bit}    0 or 1
//   {width}  an integer in 0..2^width - 1

/// @title Binary digits, tagged
/// @notice Proves that `in` is an integer in 0..2^n - 1 and gives its digits, least significant first.
/// @param in any field element; range checked here, through Bits
template Digits(n) {
    signal input in;
    signal output {bit} bit[n];
    component digits = Bits(n);
    digits.in <== in;
    bit <== digits.bit;
}

/// @title Range, tagged
/// @notice out = in, an integer in 0..2^n - 1.
/// @param in any field element; range checked here, through Bits
template Ranged(n) {
    signal input in;
    signal output {width} out;
    component digits = Bits(n);
    digits.in <== in;
    out.width = n;
    out <== in;
}

/// @title Comparison of two bounded integers
/// @notice below = 1 if a < b, else 0. A circuit with a number that does not fit n bits is not built.
/// @param a, b integers in 0..2^n - 1, by their tags
template Less(n) {
    signal input {width} a;
    signal input {width} b;
    assert(a.width <= n && b.width <= n);
    signal output {bit} below;
    component less = LessThanBounded(n);
    less.a <== a;
    less.b <== b;
    below <== less.below;
}

/// @title Bits packed 252 an element
/// @notice element[n] = sum of bit[252 n + i] 2^i over its bits; what follows the last bit is 0.
/// @param bit booleans, by their tag
template PackedBits(N) {
    assert(1 <= N);
    var elements = (N + 251) \ 252;
    signal input {bit} bit[N];
    signal output element[elements];
    for (var n = 0; n < elements; n++) {
        var last = 252 * n + 251 < N ? 252 * n + 251 : N - 1;
        var sum = 0;
        for (var i = last; i >= 252 * n; i--) {
            sum = sum + sum + bit[i];
        }
        element[n] <== sum;
    }
}

/// @title Salted commitment to bits
/// @notice out = HL(tag, [salt, bits packed]).
/// @param salt any field element
/// @param bit booleans, by their tag
template BitsHash(tag, N) {
    var elements = (N + 251) \ 252;
    signal input salt;
    signal input {bit} bit[N];
    signal output out;
    component packed = PackedBits(N);
    packed.bit <== bit;
    component hash = ListHash(tag, 1 + elements);
    hash.in[0] <== salt;
    for (var n = 0; n < elements; n++) {
        hash.in[1 + n] <== packed.element[n];
    }
    out <== hash.out;
}

/// @title Opened commitment to bits
/// @notice out = HL(tag, [salt, element]), and `element` holds the bits, as PackedBits packs them.
/// @param salt any field element
/// @param element any field elements; checked here, through Digits
template OpenedBits(tag, N) {
    var elements = (N + 251) \ 252;
    signal input salt;
    signal input element[elements];
    signal output out;
    signal output {bit} bit[N];
    component digits[elements];
    component hash = ListHash(tag, 1 + elements);
    hash.in[0] <== salt;
    for (var n = 0; n < elements; n++) {
        var size = n < elements - 1 ? 252 : N - 252 * n;
        digits[n] = Digits(size);
        digits[n].in <== element[n];
        for (var i = 0; i < size; i++) {
            bit[252 * n + i] <== digits[n].bit[i];
        }
        hash.in[1 + n] <== element[n];
    }
    out <== hash.out;
}

/// @title A window's seed
/// @notice The two halves that c_seed = H(1, s0, s1) commits to.
bus Seed() {
    signal s0;
    signal s1;
}

/// @title Opened seed commitment
/// @notice c_seed = H(1, s0, s1), and `seed` holds the two halves.
/// @param s0, s1 any field elements
template OpenedSeed() {
    signal input s0;
    signal input s1;
    signal output c_seed;
    output Seed() seed;
    component hash = Hash(3);
    hash.in[0] <== 1;
    hash.in[1] <== s0;
    hash.in[2] <== s1;
    c_seed <== hash.out;
    seed.s0 <== s0;
    seed.s1 <== s1;
}

/// @title Key of a slot's stream
/// @notice kappa = H(2, s0, s1, beacon, slot).
/// @param beacon, slot any field elements
template SlotKey() {
    input Seed() seed;
    signal input beacon;
    signal input slot;
    signal output kappa;
    component hash = Hash(5);
    hash.in[0] <== 2;
    hash.in[1] <== seed.s0;
    hash.in[2] <== seed.s1;
    hash.in[3] <== beacon;
    hash.in[4] <== slot;
    kappa <== hash.out;
}

/// @title Uniform draws of a stream (docs/relation.md, "Coins")
/// @notice u[i] = floor(low / 2^(40 (i mod 5))) mod 2^40 for the low 200 bits of word floor(i / 5) of the stream of
///         key kappa, the stream that `Noise` draws from.
/// @dev Block b is the permutation of (0, kappa, b, 9, 0, .., 0), whose words 1..16 count. `Noise` keeps its blocks to
///      itself, and its file is part of published digests, so the blocks are laid out here once more.
/// @param kappa any field element; the caller binds it to the seed, the beacon and the slot
template Uniforms(N) {
    assert(1 <= N && N <= 1 << 17);
    signal input kappa;
    signal output {width} u[N];
    u.width = 40;
    var words = (N + 4) \ 5;
    var blocks = (words + 15) \ 16;
    component block[blocks];
    component split[words];
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
    for (var i = 0; i < N; i++) {
        var sum = 0;
        for (var k = 39; k >= 0; k--) {
            sum = sum + sum + split[i \ 5].bit[40 * (i % 5) + k];
        }
        u[i] <== sum;
    }
}

/// @title Coins of a stream
/// @notice coin[i] = 1 if draw i of the stream of key kappa is below `bound`, else 0.
/// @param kappa any field element; the caller binds it
/// @param bound an integer in 0..2^40 - 1, by its tag
template Coins(N) {
    signal input kappa;
    signal input {width} bound;
    signal output {bit} coin[N];
    component uniforms = Uniforms(N);
    uniforms.kappa <== kappa;
    component less[N];
    for (var i = 0; i < N; i++) {
        less[i] = Less(40);
        less[i].a <== uniforms.u[i];
        less[i].b <== bound;
        coin[i] <== less[i].below;
    }
}
