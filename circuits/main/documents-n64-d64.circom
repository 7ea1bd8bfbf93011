pragma circom 2.2.0;

include "../lib/documents.circom";

component main {public [ctx, c_seed, beacon, slot, keep, drawn, most, continued, c_table, c_previous, c_carried, c_kept]} = Documents(64, 64);
