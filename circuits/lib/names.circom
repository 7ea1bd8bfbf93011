pragma circom 2.2.0;

include "documents.circom";

// The names of documents at opened positions (docs/circuits.md, "`names`").

/// @title The value of a number
/// @notice out = value[number], or `other` for a number of D or more.
/// @dev A tree of multiplexers: level k halves the values by bit k. Values beyond D are `other`, and two equal ones need
///      no multiplication.
/// @param bit the number's digits, least significant first; booleans, by their tag
/// @param value any field elements
template Selected(D, other) {
    var n = row_bits(D);
    signal input {bit} bit[n];
    signal input value[D];
    signal output out;
    signal chosen[n][1 << (n - 1)];
    var node[1 << n];
    for (var r = 0; r < 1 << n; r++) {
        node[r] = r < D ? value[r < D ? r : 0] : other;
    }
    for (var k = 0; k < n; k++) {
        for (var h = 0; h < 1 << (n - 1); h++) {
            if (h < 1 << (n - 1 - k)) {
                if (2 * h << k < D) {
                    chosen[k][h] <== bit[k] * (node[2 * h + 1] - node[2 * h]);
                    node[h] = node[2 * h] + chosen[k][h];
                } else {
                    chosen[k][h] <== 0;
                    node[h] = other;
                }
            } else {
                chosen[k][h] <== 0;
            }
        }
    }
    out <== node[0];
}

/// @title names: opened positions belong to rows with opened names
/// @notice Knows a table of D rows for N positions under c_table, and lists under c_opened = HL(16, [document of each
///         position, name of each document]), and a row R_g for each document g with a name other than 0, such that
///         the name of row R_g in the table is the name of document g, and R_g < D;
///         each position with a document g has a row, this row is R_g, and document g has a name other than 0.
///         So positions of one document share one row, whose name is the document's.
/// @dev Numbers of documents have the form of numbers of rows: the bits, then 1, or 0 as the last bit for a position
///      that is not opened. A document without a name has the value 2^L, which is the number of no row. The verifier
///      computes c_opened: that names of two documents differ is public, and the VERIFIER'S DUTY.
/// @param ctx public; binds the proof to its window and tenant (squared, so that it has a constraint of its own)
/// @param c_table, c_opened public; any field elements, like all private inputs
template Names(N, D) {
    assert(1 <= D && D <= N && N <= 1 << 17);
    var L = row_bits(D);
    var row_elements = slot_elements(N, L + 1);
    signal input ctx;
    signal input c_table;
    signal input c_opened;
    signal input names_salt;
    signal input name[D];
    signal input table_salt;
    signal input row[row_elements];
    signal input document[row_elements];
    signal input opened[D];
    signal input number[D];

    signal ctx_squared <== ctx * ctx;

    component names = NamesHash(D);
    names.salt <== names_salt;
    names.name <== name;
    component rows = OpenedRows(N, D);
    rows.salt <== table_salt;
    rows.names <== names.out;
    rows.element <== row;
    c_table === rows.out;

    component documents = Slots(N, L + 1);
    documents.element <== document;
    component hash = ListHash(16, row_elements + D);
    for (var n = 0; n < row_elements; n++) {
        hash.in[n] <== document[n];
    }
    for (var g = 0; g < D; g++) {
        hash.in[row_elements + g] <== opened[g];
    }
    c_opened === hash.out;

    component digits[D];
    component used[D];
    component found[D];
    signal place[D];
    for (var g = 0; g < D; g++) {
        digits[g] = Digits(L);
        digits[g].in <== number[g];
        used[g] = NonZero();
        used[g].in <== opened[g];
        found[g] = Selected(D, 0);
        found[g].bit <== digits[g].bit;
        found[g].value <== name;
        opened[g] * (found[g].out - opened[g]) === 0;
        place[g] <== (1 << L) + used[g].out * (number[g] - (1 << L));
    }

    component expected[N];
    for (var i = 0; i < N; i++) {
        expected[i] = Selected(D, 1 << L);
        var sum = 0;
        for (var k = L - 1; k >= 0; k--) {
            expected[i].bit[k] <== documents.bit[i][k];
            sum = sum + sum + rows.bit[i][k];
        }
        expected[i].value <== place;
        documents.bit[i][L] * (1 - rows.bit[i][L]) === 0;
        documents.bit[i][L] * (expected[i].out - sum) === 0;
    }
}
