pragma circom 2.2.0;

include "../lib/sampled.circom";

component main {public [ctx, c_seed, beacon, slot, c_idx, cq, htopk]} = Exact(1, 64, 256, 5, 101, 810, 64);
