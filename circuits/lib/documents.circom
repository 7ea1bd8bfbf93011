pragma circom 2.2.0;

include "coins.circom";
include "poseidon.circom";
include "../utils/bits.circom";

// The sample of a tenant with a document table of D rows for N positions (docs/circuits.md, "`documents`"). A row's number
// has `row_bits(D)` bits, a number of positions has `count_bits(N)` bits, and a stream of `count` slots of W bits has
// `slot_elements(count, W)` elements.

/// @notice Bits of a row's number in 0..D - 1, at least 1.
function row_bits(D) {
    return D > 2 ? bit_length(D - 1) : 1;
}

/// @notice Bits of a number of positions in 0..N.
function count_bits(N) {
    return bit_length(N);
}

/// @notice Elements of a stream of `count` slots of W bits, as many whole slots an element as 252 bits hold.
function slot_elements(count, W) {
    return (count + 252 \ W - 1) \ (252 \ W);
}

/// @title Stream of slots, opened
/// @notice bit[i] holds the digits of slot i, least significant first. The digits after the last slot are 0.
/// @param element any field elements; checked here, through Digits
template Slots(count, W) {
    assert(1 <= count && 1 <= W && W <= 252);
    var per = 252 \ W;
    var elements = slot_elements(count, W);
    signal input element[elements];
    signal output {bit} bit[count][W];
    component digits[elements];
    for (var n = 0; n < elements; n++) {
        var size = n < elements - 1 ? per : count - per * n;
        digits[n] = Digits(W * size);
        digits[n].in <== element[n];
        for (var i = 0; i < size; i++) {
            for (var k = 0; k < W; k++) {
                bit[per * n + i][k] <== digits[n].bit[W * i + k];
            }
        }
    }
}

/// @title Commitment to the names of a table's rows
/// @notice out = HL(15, [salt, names]); a row without a name has the name 0.
/// @param salt, name any field elements
template NamesHash(D) {
    signal input salt;
    signal input name[D];
    signal output out;
    component hash = ListHash(15, 1 + D);
    hash.in[0] <== salt;
    for (var r = 0; r < D; r++) {
        hash.in[1 + r] <== name[r];
    }
    out <== hash.out;
}

/// @title Commitment to the rows of all positions, opened
/// @notice out = HL(13, [salt, names, element]). Slot i of the stream has the bits of the row of position i, then 1;
///         or, for a position without a row, 0 as its last bit.
/// @param salt, names any field elements
/// @param element any field elements; checked here, through Slots
template OpenedRows(N, D) {
    var W = row_bits(D) + 1;
    var elements = slot_elements(N, W);
    signal input salt;
    signal input names;
    signal input element[elements];
    signal output out;
    signal output {bit} bit[N][W];
    component slots = Slots(N, W);
    slots.element <== element;
    bit <== slots.bit;
    component hash = ListHash(13, 2 + elements);
    hash.in[0] <== salt;
    hash.in[1] <== names;
    for (var n = 0; n < elements; n++) {
        hash.in[2 + n] <== element[n];
    }
    out <== hash.out;
}

/// @title Commitment to the coins and the numbers of positions of all rows, opened
/// @notice out = HL(14, [salt, names, element]). Slot r of the stream has the coin of row r, then its number of
///         positions.
/// @param salt, names any field elements
/// @param element any field elements; checked here, through Slots
template OpenedMarks(N, D) {
    var W = count_bits(N) + 1;
    var elements = slot_elements(D, W);
    signal input salt;
    signal input names;
    signal input element[elements];
    signal output out;
    signal output {bit} kept[D];
    signal output {width} count[D];
    count.width = W - 1;
    component slots = Slots(D, W);
    slots.element <== element;
    for (var r = 0; r < D; r++) {
        kept[r] <== slots.bit[r][0];
        var sum = 0;
        for (var k = W - 1; k >= 1; k--) {
            sum = sum + sum + slots.bit[r][k];
        }
        count[r] <== sum;
    }
    component hash = ListHash(14, 2 + elements);
    hash.in[0] <== salt;
    hash.in[1] <== names;
    for (var n = 0; n < elements; n++) {
        hash.in[2 + n] <== element[n];
    }
    out <== hash.out;
}

/// @title Positions of rows
/// @notice count[r] is the number of positions of row r, each below D; sample[i] is the coin of position i's row, and
///         0 for a position without a row.
/// @dev A position has the value 1 + M sample, M = 2^count_bits(N) > N, or 0 without a row. A tree of its row's bits
///      leads the value to its row. The values of row r add up to a + M b for a positions of r, b of them in the sample:
///      b <= a <= N < M, so the sum has one reading. It is count (1 + M kept) with count < M: a = count, and b is a or 0.
/// @param bit, sample, kept booleans, by their tag; count in 0..M - 1, by its tag
template Positions(N, D) {
    var n = row_bits(D);
    signal input {bit} bit[N][n + 1];
    signal input {bit} sample[N];
    signal input {bit} kept[D];
    signal input {width} count[D];
    var M = 1 << count_bits(N);
    assert(1 << count.width <= M);
    signal turned[N][1 << n];
    var sum[D];
    for (var r = 0; r < D; r++) {
        sum[r] = 0;
    }
    for (var i = 0; i < N; i++) {
        sample[i] * (1 - bit[i][n]) === 0;
        // Node 1 is the root, node h has the children 2 h and 2 h + 1, and nodes 2^n + r are the rows.
        var node[2 << n];
        node[1] = bit[i][n] + M * sample[i];
        turned[i][0] <== 0;
        for (var level = 0; level < n; level++) {
            for (var h = 1 << level; h < 2 << level; h++) {
                var first = ((2 * h + 1) << (n - level - 1)) - (1 << n);
                if (first < D) {
                    turned[i][h] <== node[h] * bit[i][n - 1 - level];
                } else {
                    turned[i][h] <== 0;
                    node[h] * bit[i][n - 1 - level] === 0;
                }
                node[2 * h] = node[h] - turned[i][h];
                node[2 * h + 1] = turned[i][h];
            }
        }
        for (var r = 0; r < D; r++) {
            sum[r] += node[(1 << n) + r];
        }
    }
    for (var r = 0; r < D; r++) {
        sum[r] === count[r] * (1 + M * kept[r]);
    }
}

/// @title Rows of the table before, moved
/// @notice Each output row is a row of the input: its name, coin, number of positions, and its number `place` there.
/// @dev Layer l moves a row by 0 or 2^l places. An output of a layer is one of two inputs of the layer, so by induction
///      every output is a row of the table before, whole: the coin, the number of positions and `place` travel as one
///      integer, beside the name. The template does not say which row arrives; `place` is its number.
/// @param move any field elements; checked here
/// @param name any field elements
/// @param kept, count coins, and integers in 0..2^count_bits(N) - 1, by their tags
template Moved(N, D) {
    var L = row_bits(D);
    var m = count_bits(N);
    signal input move[L][D];
    signal input name[D];
    signal input {bit} kept[D];
    signal input {width} count[D];
    assert(count.width <= m);
    signal output moved[D];
    signal output {bit} coin[D];
    signal output {width} positions[D];
    signal output {width} place[D];
    positions.width = m;
    place.width = L;
    signal names[L + 1][D];
    signal whole[L + 1][D];
    for (var r = 0; r < D; r++) {
        names[0][r] <== name[r];
        whole[0][r] <== kept[r] + 2 * count[r] + (2 << m) * r;
    }
    for (var l = 0; l < L; l++) {
        for (var r = 0; r < D; r++) {
            if (r < 1 << l) {
                move[l][r] === 0;
                names[l + 1][r] <== names[l][r];
                whole[l + 1][r] <== whole[l][r];
            } else {
                move[l][r] * (move[l][r] - 1) === 0;
                names[l + 1][r] <== names[l][r] + move[l][r] * (names[l][r - (1 << l)] - names[l][r]);
                whole[l + 1][r] <== whole[l][r] + move[l][r] * (whole[l][r - (1 << l)] - whole[l][r]);
            }
        }
    }
    component digits[D];
    for (var r = 0; r < D; r++) {
        moved[r] <== names[L][r];
        digits[r] = Digits(1 + m + L);
        digits[r].in <== whole[L][r];
        coin[r] <== digits[r].bit[0];
        var sum = 0;
        for (var k = m; k >= 1; k--) {
            sum = sum + sum + digits[r].bit[k];
        }
        positions[r] <== sum;
        sum = 0;
        for (var k = m + L; k >= m + 1; k--) {
            sum = sum + sum + digits[r].bit[k];
        }
        place[r] <== sum;
    }
}

/// @title First rows
/// @notice fresh[r] = 1 for r < drawn, else 0; drawn is in 0..D.
/// @param drawn any field element; checked here
template Fresh(D) {
    signal input drawn;
    signal output {bit} fresh[D];
    var sum = 0;
    for (var r = 0; r < D; r++) {
        fresh[r] <-- r < drawn ? 1 : 0;
        fresh[r] * (fresh[r] - 1) === 0;
        if (r > 0) {
            fresh[r] * (1 - fresh[r - 1]) === 0;
        }
        sum += fresh[r];
    }
    sum === drawn;
}

/// @title Continuing: the carried rows are rows of the table before
/// @notice Each row r with fresh[r] = 0 has the name and the coin of a row of the table before, a different one for each
///         r, and every other row of the table before has no positions.
/// @dev The places of carried rows increase, so they differ. The numbers of positions are integers below N + 1 and the
///      sum of those of the carried rows is the sum of all, so the others are 0. Honest providers keep the order of rows,
///      which is an injective map of docs/scan/document-table.md.
/// @param fresh, kept, before_kept booleans, before_count below 2^count_bits(N), by their tags; fresh is 1 for the first
///        rows (Fresh)
/// @param name, before_name, move any field elements; move is checked here, through Moved
template Carried(N, D) {
    var L = row_bits(D);
    signal input {bit} fresh[D];
    signal input name[D];
    signal input {bit} kept[D];
    signal input {bit} coin[D];
    signal input before_name[D];
    signal input {bit} before_kept[D];
    signal input {width} before_count[D];
    signal input move[L][D];

    component moved = Moved(N, D);
    moved.move <== move;
    moved.name <== before_name;
    moved.kept <== before_kept;
    moved.count <== before_count;

    component less[D];
    signal remaining[D];
    var sum = 0;
    for (var r = 0; r < D; r++) {
        (1 - fresh[r]) * (name[r] - moved.moved[r]) === 0;
        kept[r] - moved.coin[r] === fresh[r] * (coin[r] - moved.coin[r]);
        if (r > 0) {
            less[r] = Less(L);
            less[r].a <== moved.place[r - 1];
            less[r].b <== moved.place[r];
            (1 - fresh[r - 1]) * (1 - less[r].below) === 0;
        }
        remaining[r] <== (1 - fresh[r]) * moved.positions[r];
        sum += remaining[r] - before_count[r];
    }
    sum === 0;
}

/// @title documents: which positions of a tenant with a document table count in a window
/// @notice Knows a table of D rows for N positions, and the table before if `continued`, such that
///         c_table commits to the row of each position and the names of all rows;
///         c_previous commits to names, coins and numbers of positions of the table before;
///         each of the first `drawn` rows has the coin [U_r < keep], U the stream of key H(2, s0, s1, beacon, slot);
///         the other rows are carried (Carried);
///         each row has at most `most` positions, and none without a name;
///         c_carried commits to names, coins and numbers of positions of all rows;
///         c_kept = HL(12, [kept_salt, packed bits]), where bit i is the coin of position i's row, 0 without a row.
/// @param ctx public; binds the proof to its entry (squared, so that it has a constraint of its own)
/// @param continued public; 0 for the first window of a chain, in which all rows are drawn and c_previous is 0
/// @param drawn, most, keep public; ranges checked here
/// @param c_seed, beacon, slot, c_table, c_previous, c_carried, c_kept public; any field elements, like the others
template Documents(N, D) {
    assert(1 <= D && D <= N && N <= 1 << 17);
    var L = row_bits(D);
    var row_elements = slot_elements(N, L + 1);
    var mark_elements = slot_elements(D, count_bits(N) + 1);
    signal input ctx;
    signal input c_seed;
    signal input beacon;
    signal input slot;
    signal input keep;
    signal input drawn;
    signal input most;
    signal input continued;
    signal input c_table;
    signal input c_previous;
    signal input c_carried;
    signal input c_kept;
    signal input s0;
    signal input s1;
    signal input kept_salt;
    signal input kept[(N + 251) \ 252];
    signal input names_salt;
    signal input name[D];
    signal input table_salt;
    signal input row[row_elements];
    signal input carried_salt;
    signal input mark[mark_elements];
    signal input before_names_salt;
    signal input before_name[D];
    signal input before_salt;
    signal input before_mark[mark_elements];
    signal input move[L][D];

    signal ctx_squared <== ctx * ctx;

    component seed = OpenedSeed();
    seed.s0 <== s0;
    seed.s1 <== s1;
    c_seed === seed.c_seed;

    component key = SlotKey();
    key.seed <== seed.seed;
    key.beacon <== beacon;
    key.slot <== slot;
    component bound = Ranged(40);
    bound.in <== keep;
    component coins = Coins(D);
    coins.kappa <== key.kappa;
    coins.bound <== bound.out;

    component names = NamesHash(D);
    names.salt <== names_salt;
    names.name <== name;
    component rows = OpenedRows(N, D);
    rows.salt <== table_salt;
    rows.names <== names.out;
    rows.element <== row;
    c_table === rows.out;
    component marks = OpenedMarks(N, D);
    marks.salt <== carried_salt;
    marks.names <== names.out;
    marks.element <== mark;
    c_carried === marks.out;
    component sample = OpenedBits(12, N);
    sample.salt <== kept_salt;
    sample.element <== kept;
    c_kept === sample.out;

    component before_names = NamesHash(D);
    before_names.salt <== before_names_salt;
    before_names.name <== before_name;
    component before = OpenedMarks(N, D);
    before.salt <== before_salt;
    before.names <== before_names.out;
    before.element <== before_mark;
    continued * (continued - 1) === 0;
    continued * (before.out - c_previous) === 0;
    (1 - continued) * c_previous === 0;
    (1 - continued) * (D - drawn) === 0;

    component positions = Positions(N, D);
    positions.bit <== rows.bit;
    positions.sample <== sample.bit;
    positions.kept <== marks.kept;
    positions.count <== marks.count;

    component limit = Ranged(count_bits(N));
    limit.in <== most;
    component named[D];
    component above[D];
    for (var r = 0; r < D; r++) {
        above[r] = Less(count_bits(N));
        above[r].a <== limit.out;
        above[r].b <== marks.count[r];
        above[r].below === 0;
        named[r] = NonZero();
        named[r].in <== name[r];
        marks.count[r] * (1 - named[r].out) === 0;
    }

    component first = Fresh(D);
    first.drawn <== drawn;
    component carried = Carried(N, D);
    carried.fresh <== first.fresh;
    carried.name <== name;
    carried.kept <== marks.kept;
    carried.coin <== coins.coin;
    carried.before_name <== before_name;
    carried.before_kept <== before.kept;
    carried.before_count <== before.count;
    carried.move <== move;
}
