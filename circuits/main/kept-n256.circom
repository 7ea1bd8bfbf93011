pragma circom 2.2.0;

include "../lib/kept.circom";

component main {public [ctx, c_seed, beacon, slot, keep, c_kept]} = Kept(256);
