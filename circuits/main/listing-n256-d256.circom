pragma circom 2.2.0;

include "../lib/listing.circom";

component main {public [ctx, c_seed, beacon, slot, c_idx, cq, htopk, c_kept, held_before, held_after, chance, threshold, most]} = Listing(1, 256, 256);
