pragma circom 2.2.0;

include "coins.circom";
include "sampled.circom";

// One tag more than in coins.circom:
//   {max}  an integer in 0..max

/// @title Exact range, tagged
/// @notice out = in, an integer in 0..most.
/// @param in any field element; range checked here, through Bounded
template Capped(most) {
    signal input in;
    signal output {max} out;
    component range = Bounded(most);
    range.in <== in;
    out.max = most;
    out <== in;
}

/// @title What a policy says about lists
/// @notice A position is listed by chance if its draw is below `chance`, is relevant if it scores at least `threshold`,
///         and a list has at most `most` positions.
bus Rules() {
    signal {width} chance;
    signal {max} threshold;
    signal {max} most;
}

/// @title A policy's rules, checked
/// @notice `rules` holds the three numbers: chance in 0..2^40 - 1, threshold in 0..64 d, most in 0..N.
/// @dev Only this template makes the bus from numbers, and each tag's number is that of the range that was proved.
/// @param chance, threshold, most any field elements; ranges checked here, through Ranged and Capped
template CheckedRules(N, d) {
    signal input chance;
    signal input threshold;
    signal input most;
    output Rules() rules;
    component chance_range = Ranged(40);
    chance_range.in <== chance;
    component threshold_range = Capped(64 * d);
    threshold_range.in <== threshold;
    component most_range = Capped(N);
    most_range.in <== most;
    rules.chance.width = chance_range.out.width;
    rules.chance <== chance_range.out;
    rules.threshold.max = threshold_range.out.max;
    rules.threshold <== threshold_range.out;
    rules.most.max = most_range.out.max;
    rules.most <== most_range.out;
}

/// @title What records share, put together
/// @param rows, kept by their type and tag
/// @notice `shared` holds the two.
template Together(N, d, W) {
    var G = 252 \ W;
    signal input {bit} kept[N];
    input Rows(d, W, (N + G - 1) \ G) rows;
    output Shared(N, d, W, (N + G - 1) \ G) shared;
    shared.rows <== rows;
    shared.kept <== kept;
}

/// @notice Bits of a slot of Relevant: s - threshold + 2^(W - 1) is in 0..2^W - 1 for every score s of d components in
///         -8..7, which lies in -56 d..64 d, and every threshold in 0..64 d.
function threshold_bits(d) {
    return bit_length(120 * d - 1) + 1;
}

/// @title Which positions reach a threshold
/// @notice relevant[i] = 1 if <q, e_i> >= threshold, else 0, for the rows and the vector in `query`.
/// @dev sum over j of q_j packed_gj holds G positions' scores. With 2^(W - 1) - threshold added to each, every slot is an
///      integer in 0..2^W - 1, so all of them are one below 2^(W G) <= 2^252 whose digits are unique, and a slot's top
///      digit says whether its score is at least the threshold.
/// @param query nibbles of d components; checked here
/// @param threshold an integer in 0..64 d, by its tag
/// @param rows in slots of threshold_bits(d), by their type
template Relevant(N, d) {
    assert(1 <= d && d <= 4096);
    var W = threshold_bits(d);
    var G = 252 \ W;
    var groups = (N + G - 1) \ G;
    var elements = (d + 62) \ 63;
    signal input query[elements];
    signal input {max} threshold;
    assert(threshold.max <= 64 * d);
    input Rows(d, W, groups) rows;
    signal output {bit} relevant[N];

    component q[elements];
    for (var n = 0; n < elements; n++) {
        q[n] = Nibbles(n < elements - 1 ? 63 : d - 63 * n);
        q[n].packed <== query[n];
    }
    signal product[groups][d];
    component slots[groups];
    for (var g = 0; g < groups; g++) {
        var sum = 0;
        for (var j = 0; j < d; j++) {
            product[g][j] <== q[j \ 63].value[j % 63] * rows.packed[g][j];
            sum += product[g][j];
        }
        var first = g * G;
        var count = first + G < N ? G : N - first;
        for (var i = 0; i < count; i++) {
            sum += ((1 << (W - 1)) - threshold) * (1 << (W * i));
        }
        slots[g] = Digits(W * count);
        slots[g].in <== sum;
        for (var i = 0; i < count; i++) {
            relevant[first + i] <== slots[g].bit[W * i + W - 1];
        }
    }
}

/// @notice 1 if fewer than `most` of the marked places come before `place`, else 0. Hints only.
function within(marked, place, most) {
    var count = 0;
    for (var i = 0; i < place; i++) {
        count += marked[i];
    }
    return count < most ? 1 : 0;
}

/// @title The first winners, at most a given number
/// @notice listed[i] = 1 for the first `most` winners by position, or for all of them where there are no more.
/// @dev `inside` is 1 up to some place and 0 after it, so the listed are the winners up to there. Either that place is
///      the last, and all winners are listed, or exactly `most` are. More than `most` are never listed.
/// @param winner booleans, by their tag
/// @param most an integer in 0..N, by its tag
template FirstWinners(N) {
    signal input {bit} winner[N];
    signal input {max} most;
    assert(most.max <= N);
    signal output {bit} listed[N];
    signal inside[N];
    var sum = 0;
    for (var i = 0; i < N; i++) {
        inside[i] <-- within(winner, i, most);
        inside[i] * (inside[i] - 1) === 0;
        if (i > 0) {
            inside[i] * (1 - inside[i - 1]) === 0;
        }
        listed[i] <== winner[i] * inside[i];
        sum += listed[i];
    }
    component left = Bits(bit_length(N));
    left.in <== most - sum;
    (1 - inside[N - 1]) * (most - sum) === 0;
}

/// @title One list of an account, after what it held before
/// @notice With chance_i = [U_i < chance] for the stream of key H(2, s0, s1, beacon, slot), relevant_i for the q of
///         cq = HL(4, [salt_c, q]), and winner_i = chance_i or (relevant_i and kept_i and not held_i):
///         htopk = HL(5, [salt_k, N, packed bits]) for the first winners, and after_i = held_i or listed_i.
/// @param seed, shared, rules, held by their types and tags
/// @param query checked here, through Relevant
/// @param beacon, slot, cq, htopk, salt_c, salt_k any field elements
template ListingRecord(N, d) {
    var W = threshold_bits(d);
    var G = 252 \ W;
    var query_elements = (d + 62) \ 63;
    input Seed() seed;
    input Shared(N, d, W, (N + G - 1) \ G) shared;
    input Rules() rules;
    signal input {bit} held[N];
    signal input beacon;
    signal input slot;
    signal input cq;
    signal input htopk;
    signal input salt_c;
    signal input query[query_elements];
    signal input salt_k;
    signal output {bit} after[N];

    component query_hash = ListHash(4, 1 + query_elements);
    query_hash.in[0] <== salt_c;
    for (var i = 0; i < query_elements; i++) {
        query_hash.in[1 + i] <== query[i];
    }
    cq === query_hash.out;

    component relevant = Relevant(N, d);
    relevant.query <== query;
    relevant.threshold <== rules.threshold;
    relevant.rows <== shared.rows;

    component key = SlotKey();
    key.seed <== seed;
    key.beacon <== beacon;
    key.slot <== slot;
    component chance = Coins(N);
    chance.kappa <== key.kappa;
    chance.bound <== rules.chance;

    signal fresh[N];
    signal wanted[N];
    signal {bit} winner[N];
    for (var i = 0; i < N; i++) {
        fresh[i] <== shared.kept[i] * (1 - held[i]);
        wanted[i] <== relevant.relevant[i] * fresh[i];
        winner[i] <== chance.coin[i] + wanted[i] - chance.coin[i] * wanted[i];
    }
    component first = FirstWinners(N);
    first.winner <== winner;
    first.most <== rules.most;

    component packed = PackedBits(N);
    packed.bit <== first.listed;
    var elements = (N + 251) \ 252;
    component list_hash = ListHash(5, 2 + elements);
    list_hash.in[0] <== salt_k;
    list_hash.in[1] <== N;
    for (var n = 0; n < elements; n++) {
        list_hash.in[2 + n] <== packed.element[n];
    }
    htopk === list_hash.out;

    for (var i = 0; i < N; i++) {
        after[i] <== held[i] + first.listed[i] - held[i] * first.listed[i];
    }
}

/// @title listing: Q lists of one account of a listing tenant, one after another (docs/relation.md, "Coins")
/// @notice Knows s0, s1, an index and its salt, the kept bits, what the account held before, and for every k a query
///         vector and two salts such that c_seed = H(1, s0, s1), c_idx = HL(7, [index_salt, index]),
///         c_kept = HL(12, [kept_salt, kept]), held_before = HL(13, [before_salt, before]), every record is a
///         ListingRecord after what the one before it left, and held_after = HL(13, [after_salt, packed bits]) for what
///         the last one leaves.
/// @dev For the verifier: the records are one account's, in the order of their numbers and without a gap; held_before of
///      the first one is HL(13, [0, zeros]), else held_after of the proof before. That the kept bits are the window's
///      coins is proved by `Kept`.
/// @param ctx public; binds the proof to its records (squared, so that each has a constraint of its own)
/// @param chance public; the policy has it in 1..2^40 - 1; checked here to be in 0..2^40 - 1
/// @param threshold public; the policy has it in 1..49 d; checked here to be in 0..64 d
/// @param most public; the policy has it in 1..N; checked here to be in 0..N
/// @param index, kept, before, query checked here, through OpenedIndex, OpenedBits and Relevant
/// @param c_seed, beacon, slot, c_idx, cq, htopk, c_kept, held_before, held_after public; any field elements, as are
///        s0, s1 and the salts
template Listing(Q, N, d) {
    var W = threshold_bits(d);
    signal input ctx[Q];
    signal input c_seed;
    signal input beacon[Q];
    signal input slot[Q];
    signal input c_idx;
    signal input cq[Q];
    signal input htopk[Q];
    signal input c_kept;
    signal input held_before;
    signal input held_after;
    signal input chance;
    signal input threshold;
    signal input most;
    signal input s0;
    signal input s1;
    signal input index_salt;
    signal input index[(N * d + 62) \ 63];
    signal input kept_salt;
    signal input kept[(N + 251) \ 252];
    signal input before_salt;
    signal input before[(N + 251) \ 252];
    signal input after_salt;
    signal input salt_c[Q];
    signal input query[Q][(d + 62) \ 63];
    signal input salt_k[Q];

    component seed = OpenedSeed();
    seed.s0 <== s0;
    seed.s1 <== s1;
    c_seed === seed.c_seed;

    component opened_index = OpenedIndex(N, d, W);
    opened_index.salt <== index_salt;
    opened_index.index <== index;
    c_idx === opened_index.c_idx;

    component opened_kept = OpenedBits(12, N);
    opened_kept.salt <== kept_salt;
    opened_kept.element <== kept;
    c_kept === opened_kept.out;

    component opened_before = OpenedBits(13, N);
    opened_before.salt <== before_salt;
    opened_before.element <== before;
    held_before === opened_before.out;

    component together = Together(N, d, W);
    together.rows <== opened_index.rows;
    together.kept <== opened_kept.bit;

    component checked = CheckedRules(N, d);
    checked.chance <== chance;
    checked.threshold <== threshold;
    checked.most <== most;

    signal ctx_squared[Q];
    component record[Q];
    for (var k = 0; k < Q; k++) {
        ctx_squared[k] <== ctx[k] * ctx[k];
        record[k] = ListingRecord(N, d);
        record[k].seed <== seed.seed;
        record[k].shared <== together.shared;
        record[k].rules <== checked.rules;
        if (k == 0) {
            record[k].held <== opened_before.bit;
        } else {
            record[k].held <== record[k - 1].after;
        }
        record[k].beacon <== beacon[k];
        record[k].slot <== slot[k];
        record[k].cq <== cq[k];
        record[k].htopk <== htopk[k];
        record[k].salt_c <== salt_c[k];
        record[k].query <== query[k];
        record[k].salt_k <== salt_k[k];
    }

    component after = BitsHash(13, N);
    after.salt <== after_salt;
    after.bit <== record[Q - 1].after;
    held_after === after.out;
}
