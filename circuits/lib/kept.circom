pragma circom 2.2.0;

include "coins.circom";

/// @title kept: which positions of a sampled tenant count in a window (docs/relation.md, "Coins")
/// @notice Knows s0, s1 and a salt such that c_seed = H(1, s0, s1) and c_kept = HL(12, [salt, packed bits]) for the bits
///         kept_i = [U_i < keep], i = 0..N - 1, where U is the stream of key H(2, s0, s1, beacon, slot).
/// @dev The prover chooses none of the bits: seed, beacon, slot and keep are public. That the slot is the tenant's own
///      for sampling, and the beacon that of entry 1, is for the verifier, who fills both in.
/// @param ctx public; binds the proof to its entry (squared, so that it has a constraint of its own)
/// @param keep public; the policy has it in 1..2^40 - 1. What the circuit needs, an integer in 0..2^40 - 1, is checked
///        here: beyond it there is no assignment, at 0 no position is kept
/// @param c_seed, beacon, slot, c_kept public; any field elements, like s0, s1 and salt
template Kept(N) {
    signal input ctx;
    signal input c_seed;
    signal input beacon;
    signal input slot;
    signal input keep;
    signal input c_kept;
    signal input s0;
    signal input s1;
    signal input salt;

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
    component coins = Coins(N);
    coins.kappa <== key.kappa;
    coins.bound <== bound.out;

    component hash = BitsHash(12, N);
    hash.salt <== salt;
    hash.bit <== coins.coin;
    c_kept === hash.out;
}
