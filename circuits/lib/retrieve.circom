pragma circom 2.2.0;

include "dgs1.circom";
include "poseidon.circom";
include "scores.circom";
include "top_k.circom";

/// @title retrieve: claims A2, A3 and A4 of one record (docs/protocol.md, "The four claims")
/// @notice Knows s0, s1, an index, a query vector, positions and three salts such that
///         A4  c_idx = HL(7, [index_salt, index]) for the index of N positions of d int4 components;
///         A2  c_seed = H(1, s0, s1), and z is DGS-1 noise of key H(2, s0, s1, beacon, slot);
///         A3  htopk = HL(5, [salt_k, K, positions]) for the first K positions, in order, of u + z, where u
///             are the quantised scores of all positions for the q of cq = HL(4, [salt_c, q]).
/// @dev The prover cannot choose which index or slot is meant: c_idx and slot are public, and the verifier
///      takes them from the opening and the record. Ranges: index, query and positions are checked here,
///      through Nibbles and TopK; the others are field elements without further structure.
/// @param ctx public; binds the proof to its record (squared, so that it has a constraint of its own)
template Retrieve(N, d, K, m, gains, lo, hi, R) {
    var index_elements = (N * d + 62) \ 63;
    var query_elements = (d + 62) \ 63;
    signal input ctx;
    signal input c_seed;
    signal input beacon;
    signal input slot;
    signal input c_idx;
    signal input cq;
    signal input htopk;
    signal input s0;
    signal input s1;
    signal input index_salt;
    signal input index[index_elements];
    signal input salt_c;
    signal input query[query_elements];
    signal input salt_k;
    signal input position[K];

    signal ctx_squared <== ctx * ctx;

    component index_hash = ListHash(7, 1 + index_elements);
    index_hash.in[0] <== index_salt;
    for (var i = 0; i < index_elements; i++) {
        index_hash.in[1 + i] <== index[i];
    }
    c_idx === index_hash.out;

    component query_hash = ListHash(4, 1 + query_elements);
    query_hash.in[0] <== salt_c;
    for (var i = 0; i < query_elements; i++) {
        query_hash.in[1 + i] <== query[i];
    }
    cq === query_hash.out;

    component top_k_hash = ListHash(5, 2 + K);
    top_k_hash.in[0] <== salt_k;
    top_k_hash.in[1] <== K;
    for (var k = 0; k < K; k++) {
        top_k_hash.in[2 + k] <== position[k];
    }
    htopk === top_k_hash.out;

    component seed_hash = Hash(3);
    seed_hash.in[0] <== 1;
    seed_hash.in[1] <== s0;
    seed_hash.in[2] <== s1;
    c_seed === seed_hash.out;

    component key = Hash(5);
    key.in[0] <== 2;
    key.in[1] <== s0;
    key.in[2] <== s1;
    key.in[3] <== beacon;
    key.in[4] <== slot;

    component noise = Noise(N, m, gains);
    noise.kappa <== key.out;

    component scores = Scores(N, d, lo, hi, R);
    scores.index <== index;
    scores.query <== query;

    var reach = 0;
    for (var c = 0; c < m; c++) {
        reach += 127 * gains[c];
    }
    component top_k = TopK(N, K, -reach, R + reach);
    for (var i = 0; i < N; i++) {
        top_k.y[i] <== scores.u[i] + noise.z[i];
    }
    top_k.position <== position;
}
