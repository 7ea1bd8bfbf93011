pragma circom 2.2.0;

include "coins.circom";
include "poseidon.circom";
include "scores.circom";
include "top_k.circom";

/// @title An index's rows, one slot of W bits a position
/// @notice packed[g][j] as PackedRows gives it. Only OpenedIndex makes this bus, so that nobody can score rows whose
///         components were not checked, or that another W packed: W is part of the type.
bus Rows(d, W, groups) {
    signal packed[groups][d];
}

/// @title Opened index commitment
/// @notice c_idx = HL(7, [salt, index]), and `rows` holds the index's components, each of them in -8..7.
/// @param salt any field element
/// @param index dense nibble stream of N d components; checked here, through PackedRows
template OpenedIndex(N, d, W) {
    var elements = (N * d + 62) \ 63;
    var G = 252 \ W;
    var groups = (N + G - 1) \ G;
    signal input salt;
    signal input index[elements];
    signal output c_idx;
    output Rows(d, W, groups) rows;
    component hash = ListHash(7, 1 + elements);
    hash.in[0] <== salt;
    for (var i = 0; i < elements; i++) {
        hash.in[1 + i] <== index[i];
    }
    c_idx <== hash.out;
    component packed = PackedRows(N, d, W, G);
    packed.index <== index;
    rows.packed <== packed.packed;
}

/// @title What the records of a tenant and window share
/// @notice Its rows, and which of its positions count.
bus Shared(N, d, W, groups) {
    Rows(d, W, groups) rows;
    signal {bit} kept[N];
}

/// @title Noise of several records of one seed: claim A2
/// @notice c_seed = H(1, s0, s1), and z[k] is DGS-1 noise of key H(2, s0, s1, beacon[k], slot[k]). {reach}: every
///         z[k][i] is an integer in -reach..reach.
/// @param s0, s1, c_seed, beacon, slot any field elements
template ReachingNoise(Q, N, m, gains) {
    signal input s0;
    signal input s1;
    signal input c_seed;
    signal input beacon[Q];
    signal input slot[Q];
    signal output {reach} z[Q][N];
    var reach = 0;
    for (var c = 0; c < m; c++) {
        reach += 127 * gains[c];
    }
    z.reach = reach;
    component seed = OpenedSeed();
    seed.s0 <== s0;
    seed.s1 <== s1;
    c_seed === seed.c_seed;
    component key[Q];
    component noise[Q];
    for (var k = 0; k < Q; k++) {
        key[k] = SlotKey();
        key[k].seed <== seed.seed;
        key[k].beacon <== beacon[k];
        key[k].slot <== slot[k];
        noise[k] = Noise(N, m, gains);
        noise[k].kappa <== key[k].kappa;
        z[k] <== noise[k].z;
    }
}

/// @title No noise, for records that are still about one seed and slot
/// @notice z[i] = 0; {reach} as in ReachingNoise. Claim A2 is empty: nothing depends on the seed.
/// @param c_seed, beacon, slot any field elements; squared, so that each has a constraint of its own, as ctx has, and a
///        proof is one of its record and of no other
template NoNoise(Q, N) {
    signal input c_seed;
    signal input beacon[Q];
    signal input slot[Q];
    signal output {reach} z[Q][N];
    z.reach = 0;
    signal c_seed_squared <== c_seed * c_seed;
    signal beacon_squared[Q];
    signal slot_squared[Q];
    for (var k = 0; k < Q; k++) {
        beacon_squared[k] <== beacon[k] * beacon[k];
        slot_squared[k] <== slot[k] * slot[k];
        for (var i = 0; i < N; i++) {
            z[k][i] <== 0;
        }
    }
}

/// @title One answer over shared rows: claim A3 of one record
/// @notice With u the quantised scores of all positions for the q of cq = HL(4, [salt_c, q]):
///         htopk = HL(5, [salt_k, K, positions]) for the first K positions, in order, of kept_i u_i + z_i.
/// @param shared rows and kept bits, by its type
/// @param z noise in -reach..reach, by its tag
/// @param query, position checked here, through Scores and TopK
/// @param cq, htopk, salt_c, salt_k any field elements
template KeptAnswer(N, d, K, lo, hi, R) {
    var W = slot_bits(d, lo, hi, R);
    var G = 252 \ W;
    var query_elements = (d + 62) \ 63;
    input Shared(N, d, W, (N + G - 1) \ G) shared;
    signal input {reach} z[N];
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

    component scores = Scores(N, d, lo, hi, R);
    scores.packed <== shared.rows.packed;
    scores.query <== query;

    // A position that is not kept scores 0, as an empty one does.
    signal scored[N];
    component top_k = TopK(N, K, -z.reach, R + z.reach);
    for (var i = 0; i < N; i++) {
        scored[i] <== shared.kept[i] * scores.u[i];
        top_k.y[i] <== scored[i] + z[i];
    }
    top_k.position <== position;
}

/// @title Answers of Q records of one tenant and window: claims A3 and A4
/// @notice c_idx = HL(7, [index_salt, index]), and a KeptAnswer over that index for every record.
/// @param kept, z what counts and the noise, by their tags
/// @param index, query, position checked here, through OpenedIndex and KeptAnswer; the others are any field elements
/// @param ctx binds the proof to its records (squared, so that each has a constraint of its own)
template Answers(Q, N, d, K, lo, hi, R) {
    var W = slot_bits(d, lo, hi, R);
    var G = 252 \ W;
    signal input {bit} kept[N];
    signal input {reach} z[Q][N];
    signal input ctx[Q];
    signal input c_idx;
    signal input cq[Q];
    signal input htopk[Q];
    signal input index_salt;
    signal input index[(N * d + 62) \ 63];
    signal input salt_c[Q];
    signal input query[Q][(d + 62) \ 63];
    signal input salt_k[Q];
    signal input position[Q][K];

    component opened = OpenedIndex(N, d, W);
    opened.salt <== index_salt;
    opened.index <== index;
    c_idx === opened.c_idx;

    Shared(N, d, W, (N + G - 1) \ G) shared;
    shared.rows <== opened.rows;
    shared.kept <== kept;

    signal ctx_squared[Q];
    component answer[Q];
    for (var k = 0; k < Q; k++) {
        ctx_squared[k] <== ctx[k] * ctx[k];
        answer[k] = KeptAnswer(N, d, K, lo, hi, R);
        answer[k].shared <== shared;
        answer[k].z <== z[k];
        answer[k].cq <== cq[k];
        answer[k].htopk <== htopk[k];
        answer[k].salt_c <== salt_c[k];
        answer[k].query <== query[k];
        answer[k].salt_k <== salt_k[k];
        answer[k].position <== position[k];
    }
}

/// @title retrieve of a sampled tenant with noise: claims A2, A3 and A4 of Q records of one tenant and window
/// @notice As `Retrieve`, with kept_i u_i in the place of u_i for the bits under c_kept = HL(12, [kept_salt, kept]).
/// @dev That the bits are the window's coins is proved once, by `Kept`; the verifier takes c_kept from the entry that
///      this other proof is about.
/// @param c_seed, beacon, slot, c_idx, cq, htopk, c_kept, ctx public; any field elements
/// @param s0, s1, index_salt, kept_salt, salt_c, salt_k any field elements
/// @param index, kept, query, position checked here, through Answers and OpenedBits
template SampledNoise(Q, N, d, K, m, gains, lo, hi, R) {
    signal input ctx[Q];
    signal input c_seed;
    signal input beacon[Q];
    signal input slot[Q];
    signal input c_idx;
    signal input cq[Q];
    signal input htopk[Q];
    signal input c_kept;
    signal input s0;
    signal input s1;
    signal input index_salt;
    signal input index[(N * d + 62) \ 63];
    signal input kept_salt;
    signal input kept[(N + 251) \ 252];
    signal input salt_c[Q];
    signal input query[Q][(d + 62) \ 63];
    signal input salt_k[Q];
    signal input position[Q][K];

    component opened_kept = OpenedBits(12, N);
    opened_kept.salt <== kept_salt;
    opened_kept.element <== kept;
    c_kept === opened_kept.out;

    component noise = ReachingNoise(Q, N, m, gains);
    noise.s0 <== s0;
    noise.s1 <== s1;
    noise.c_seed <== c_seed;
    noise.beacon <== beacon;
    noise.slot <== slot;

    component answers = Answers(Q, N, d, K, lo, hi, R);
    answers.kept <== opened_kept.bit;
    answers.z <== noise.z;
    answers.ctx <== ctx;
    answers.c_idx <== c_idx;
    answers.cq <== cq;
    answers.htopk <== htopk;
    answers.index_salt <== index_salt;
    answers.index <== index;
    answers.salt_c <== salt_c;
    answers.query <== query;
    answers.salt_k <== salt_k;
    answers.position <== position;
}

/// @title retrieve of a sampled tenant without noise: claims A3 and A4 of Q records of one tenant and window
/// @notice As SampledNoise with z = 0.
/// @param c_seed, beacon, slot, c_idx, cq, htopk, c_kept, ctx public; any field elements
/// @param index_salt, kept_salt, salt_c, salt_k any field elements
/// @param index, kept, query, position checked here, through Answers and OpenedBits
template Sampled(Q, N, d, K, lo, hi, R) {
    signal input ctx[Q];
    signal input c_seed;
    signal input beacon[Q];
    signal input slot[Q];
    signal input c_idx;
    signal input cq[Q];
    signal input htopk[Q];
    signal input c_kept;
    signal input index_salt;
    signal input index[(N * d + 62) \ 63];
    signal input kept_salt;
    signal input kept[(N + 251) \ 252];
    signal input salt_c[Q];
    signal input query[Q][(d + 62) \ 63];
    signal input salt_k[Q];
    signal input position[Q][K];

    component opened_kept = OpenedBits(12, N);
    opened_kept.salt <== kept_salt;
    opened_kept.element <== kept;
    c_kept === opened_kept.out;

    component noise = NoNoise(Q, N);
    noise.c_seed <== c_seed;
    noise.beacon <== beacon;
    noise.slot <== slot;

    component answers = Answers(Q, N, d, K, lo, hi, R);
    answers.kept <== opened_kept.bit;
    answers.z <== noise.z;
    answers.ctx <== ctx;
    answers.c_idx <== c_idx;
    answers.cq <== cq;
    answers.htopk <== htopk;
    answers.index_salt <== index_salt;
    answers.index <== index;
    answers.salt_c <== salt_c;
    answers.query <== query;
    answers.salt_k <== salt_k;
    answers.position <== position;
}

/// @title retrieve of a tenant without noise or sampling: claims A3 and A4 of Q records of one tenant and window
/// @notice As Sampled with every position kept: the exact top K, which hides nothing ("integrity only").
/// @param c_seed, beacon, slot, c_idx, cq, htopk, ctx public; any field elements
/// @param index_salt, salt_c, salt_k any field elements
/// @param index, query, position checked here, through Answers
template Exact(Q, N, d, K, lo, hi, R) {
    signal input ctx[Q];
    signal input c_seed;
    signal input beacon[Q];
    signal input slot[Q];
    signal input c_idx;
    signal input cq[Q];
    signal input htopk[Q];
    signal input index_salt;
    signal input index[(N * d + 62) \ 63];
    signal input salt_c[Q];
    signal input query[Q][(d + 62) \ 63];
    signal input salt_k[Q];
    signal input position[Q][K];

    component noise = NoNoise(Q, N);
    noise.c_seed <== c_seed;
    noise.beacon <== beacon;
    noise.slot <== slot;

    signal {bit} kept[N];
    component answers = Answers(Q, N, d, K, lo, hi, R);
    for (var i = 0; i < N; i++) {
        kept[i] <== 1;
    }
    answers.kept <== kept;
    answers.z <== noise.z;
    answers.ctx <== ctx;
    answers.c_idx <== c_idx;
    answers.cq <== cq;
    answers.htopk <== htopk;
    answers.index_salt <== index_salt;
    answers.index <== index;
    answers.salt_c <== salt_c;
    answers.query <== query;
    answers.salt_k <== salt_k;
    answers.position <== position;
}
