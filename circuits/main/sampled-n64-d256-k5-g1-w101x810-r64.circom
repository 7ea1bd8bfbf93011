pragma circom 2.2.0;

include "../lib/sampled.circom";

component main {public [ctx, c_seed, beacon, slot, c_idx, cq, htopk, c_kept]} = SampledNoise(1, 64, 256, 5, 1, [1], 101, 810, 64);
