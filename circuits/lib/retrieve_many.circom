pragma circom 2.2.0;

include "dgs1.circom";
include "poseidon.circom";
include "scores.circom";
include "top_k.circom";

/// @title An index's components, one slot a position
/// @notice packed[g][j] = sum over the positions i of group g of e_ij 2^(W (i - G g)).
/// @dev What several queries share: the components' digits, the dearest part of `retrieve`.
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
    for (var g = 0; g < groups; g++) {
        for (var j = 0; j < d; j++) {
            var sum = 0;
            for (var i = g * G; i < (g + 1) * G && i < N; i++) {
                var n = i * d + j;
                var e_ij = -8;
                for (var k = 0; k < 4; k++) {
                    e_ij += e[n \ 63].bit[4 * (n % 63) + k] * (1 << k);
                }
                sum += e_ij * (1 << (W * (i - g * G)));
            }
            packed[g][j] <== sum;
        }
    }
}

/// @title Quantised scores of all positions, for rows that are packed already
/// @notice u[i] = the policy's quantiser on <q, e_i>.
/// @dev The equation of `Scores`: R times sum_j q_j packed_gj equals the scaled scores in slots of W bits.
/// @param packed outputs of PackedRows with W = slot_bits(..) and G = 252 \ W; NOT checked here
/// @param query nibbles of d components; checked here
template PackedScores(N, d, lo, hi, R) {
    var W = slot_bits(d, lo, hi, R);
    var G = 252 \ W;
    var groups = (N + G - 1) \ G;
    var elements = (d + 62) \ 63;
    signal input packed[groups][d];
    signal input query[elements];
    signal output u[N];

    component q[elements];
    for (var n = 0; n < elements; n++) {
        q[n] = Nibbles(n < elements - 1 ? 63 : d - 63 * n);
        q[n].packed <== query[n];
    }
    component quantised[N];
    signal product[groups][d];
    for (var g = 0; g < groups; g++) {
        var sum = 0;
        for (var j = 0; j < d; j++) {
            var q_j = -8;
            for (var k = 0; k < 4; k++) {
                q_j += q[j \ 63].bit[4 * (j % 63) + k] * (1 << k);
            }
            product[g][j] <== q_j * packed[g][j];
            sum += product[g][j];
        }
        // In hints: scores are at least -56 d, so that with 56 d more a slot holds a natural number below 2^W.
        var raised = sum;
        for (var i = g * G; i < (g + 1) * G && i < N; i++) {
            raised += 56 * d * (1 << (W * (i - g * G)));
        }
        var slots = 0;
        for (var i = g * G; i < (g + 1) * G && i < N; i++) {
            quantised[i] = Quantise(d, lo, hi, R);
            quantised[i].scaled <-- R * (((raised >> (W * (i - g * G))) & ((1 << W) - 1)) - 56 * d);
            slots += quantised[i].scaled * (1 << (W * (i - g * G)));
            u[i] <== quantised[i].u;
        }
        R * sum === slots;
    }
}

/// @title One answer over rows and a seed that are shared: A2 and A3 of `retrieve`
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

    component scores = PackedScores(N, d, lo, hi, R);
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

/// @title retrieve for Q records of one tenant and window: claims A2, A3 and A4 of each
/// @notice What `Retrieve` states of (ctx[k], c_seed, beacon[k], slot[k], c_idx, cq[k], htopk[k]) for every k, with one
///         s0, s1, index and index_salt for all of them.
/// @dev Which record stands at which place is the verifier's: it sets every public input. Two places may hold the
///      same record.
/// @param ctx public; binds the proof to its records (squared, so that each has a constraint of its own)
template RetrieveMany(Q, N, d, K, m, gains, lo, hi, R) {
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
