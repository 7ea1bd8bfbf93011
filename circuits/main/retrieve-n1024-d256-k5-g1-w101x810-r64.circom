pragma circom 2.2.0;

include "../lib/retrieve.circom";

component main {public [ctx, c_seed, beacon, slot, c_idx, cq, htopk]} = Retrieve(1, 1024, 256, 5, 1, [1], 101, 810, 64);
