pragma circom 2.2.0;

/// @title Equality slot by slot
/// @notice packed = sum over i of value[i] 2^(W i). If `packed` is congruent to the packing of G integers that lie
///         in low..high, and every value[i] is an integer in least..most, then the integers are the values.
/// @dev The difference of a slot's two integers is below 2^W in magnitude, so all of them, packed, make a number
///      below 2^(W G) <= 2^252 < r / 2: it is 0 modulo r only if it is 0. Then every difference, from the lowest
///      slot on, is a multiple of 2^W, hence 0. The asserts below are this argument's premises on the parameters,
///      and that none of their own arithmetic wraps modulo r. Nothing rests on how prover or caller chose the
///      values.
/// @param W, G bits of a slot, and slots; compile time, like the ranges
/// @param low, high, least, most the ranges: that the slots and values lie in them is the CALLER'S DUTY
/// @param packed, value any field elements; their equation is checked here
template SlotEquality(W, G, low, high, least, most) {
    assert(1 <= W && W <= 64 && 1 <= G && G <= 252);
    assert(W * G <= 252);
    assert(-(1 << 64) < low && low <= high && high < 1 << 64);
    assert(-(1 << 64) < least && least <= most && most < 1 << 64);
    assert(high - least < 1 << W && most - low < 1 << W);
    signal input packed;
    signal input value[G];
    var sum = 0;
    for (var i = 0; i < G; i++) {
        sum += value[i] * (1 << (W * i));
    }
    packed === sum;
}
