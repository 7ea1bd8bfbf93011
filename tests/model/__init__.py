"""A complete search for false statements that the relation of the scan argument accepts over a small prime.

The pages in `docs/scan` reduce each run to claims about columns of field elements. This package repeats the claims over a
prime from 97 to 65,521 and for two to four positions, so that a test can try *every* value that a prover may write. A
module has one family of claims and defines:

- `CLAIMS`: the names of the claims, as the pages number them,
- `accepted_and_false(..., without)`: the false statements that pass if the claims of `without` are omitted.

The tests check two facts. With all claims no false statement passes, so no claim is missing. Without any one of the claims
a false statement passes, so no claim is superfluous. `layers` measures the errors of sumchecks and lookups at random
points, which check the claims over a large field. `small_encoder` searches a whole model, from the tokens to the vector, over
primes next to 2^34.

Only the sizes are reduced: fewer limbs, shorter draws, a smaller modulus. Each module asserts for these sizes that integers
do not wrap around, as the pages state.
"""
