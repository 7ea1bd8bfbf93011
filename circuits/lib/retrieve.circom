pragma circom 2.2.0;

include "dgs1.circom";
include "poseidon.circom";
include "scores.circom";
include "top_k.circom";

/// @title One answer, over rows and a seed that may be shared: claims A2 and A3 of one record
/// @notice With z the DGS-1 noise of key H(2, s0, s1, beacon, slot) and u the quantised scores of all positions
///         for the q of cq = HL(4, [salt_c, q]): htopk = HL(5, [salt_k, K, positions]) for the first K positions,
///         in order, of u + z.
/// @param packed outputs of PackedRows; NOT checked here
/// @param s0, s1 any; the caller binds them to c_seed
/// @param query, position checked here, through Nibbles and TopK
/// @param beacon, slot, cq, htopk, salt_c, salt_k any field elements
template Answer(N, d, K, m, gains, lo, hi, R) {
    var G = 252 \ slot_bits(d, lo, hi, R);
    var groups = (N + G - 1) \ G;
    var query_elements = (d + 62) \ 63;
    signal input packed[groups][d];
    signal input s0;
    signal input s1;
    signal input beacon;
    signal input slot;
    signal input cq;
    signal input htopk;
    signal input salt_c;
    signal input query[query_elements];
    signal input salt_k;
    signal input position[K];

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

    component key = Hash(5);
    key.in[0] <== 2;
    key.in[1] <== s0;
    key.in[2] <== s1;
    key.in[3] <== beacon;
    key.in[4] <== slot;

    component noise = Noise(N, m, gains);
    noise.kappa <== key.out;

    component scores = Scores(N, d, lo, hi, R);
    scores.packed <== packed;
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

/// @title retrieve: claims A2, A3 and A4 of Q records of one tenant and window (docs/protocol.md, "The four claims")
/// @notice Knows s0, s1, an index and its salt and, for every k, a query vector, positions and two salts such that
///         A4  c_idx = HL(7, [index_salt, index]) for the index of N positions of d int4 components;
///         A2  c_seed = H(1, s0, s1), and z is DGS-1 noise of key H(2, s0, s1, beacon[k], slot[k]);
///         A3  htopk[k] = HL(5, [salt_k, K, positions]) for the first K positions, in order, of u + z, where u
///             are the quantised scores of all positions for the q of cq[k] = HL(4, [salt_c, q]).
/// @dev The prover cannot choose which index or slot is meant, nor which record stands at which place: all of
///      that is public, and the verifier takes it from the opening and the records. Two places may hold the same
///      record. Ranges: index, query and positions are checked here, through Nibbles and TopK; the others are
///      field elements without further structure.
/// @param ctx public; binds the proof to its records (squared, so that each has a constraint of its own)
template Retrieve(Q, N, d, K, m, gains, lo, hi, R) {
    var index_elements = (N * d + 62) \ 63;
    var query_elements = (d + 62) \ 63;
    var W = slot_bits(d, lo, hi, R);
    signal input ctx[Q];
    signal input c_seed;
    signal input beacon[Q];
    signal input slot[Q];
    signal input c_idx;
    signal input cq[Q];
    signal input htopk[Q];
    signal input s0;
    signal input s1;
    signal input index_salt;
    signal input index[index_elements];
    signal input salt_c[Q];
    signal input query[Q][query_elements];
    signal input salt_k[Q];
    signal input position[Q][K];

    component index_hash = ListHash(7, 1 + index_elements);
    index_hash.in[0] <== index_salt;
    for (var i = 0; i < index_elements; i++) {
        index_hash.in[1 + i] <== index[i];
    }
    c_idx === index_hash.out;

    component seed_hash = Hash(3);
    seed_hash.in[0] <== 1;
    seed_hash.in[1] <== s0;
    seed_hash.in[2] <== s1;
    c_seed === seed_hash.out;

    component rows = PackedRows(N, d, W, 252 \ W);
    rows.index <== index;

    signal ctx_squared[Q];
    component answer[Q];
    for (var k = 0; k < Q; k++) {
        ctx_squared[k] <== ctx[k] * ctx[k];
        answer[k] = Answer(N, d, K, m, gains, lo, hi, R);
        answer[k].packed <== rows.packed;
        answer[k].s0 <== s0;
        answer[k].s1 <== s1;
        answer[k].beacon <== beacon[k];
        answer[k].slot <== slot[k];
        answer[k].cq <== cq[k];
        answer[k].htopk <== htopk[k];
        answer[k].salt_c <== salt_c[k];
        answer[k].query <== query[k];
        answer[k].salt_k <== salt_k[k];
        answer[k].position <== position[k];
    }
}
