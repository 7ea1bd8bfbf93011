pragma circom 2.2.0;

include "../lib/names.circom";

component main {public [ctx, c_table, c_opened]} = Names(64, 64);
