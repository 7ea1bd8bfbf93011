"""The relation of the scan argument over a small prime, searched without a gap for false statements that it accepts.

The pages in `docs/scan` reduce each run to claims about columns of field elements. Here these claims stand once more, over
a prime from 97 to 65,521 and for two to four positions, so that *every* value that a prover may write can be tried. A
module has one family of claims and says:

- `CLAIMS`: their names, as the pages number them,
- `accepted_and_false(..., without)`: what a prover gets accepted that is not so, where the claims of `without` are not made.

The tests ask for two things. With every claim there is nothing to find; and without any one of them there is, so that no
claim is missing, and none is there for nothing. What the claims are worth over a large field, where they are held by
sumchecks and lookups at random points, is `layers`.

Sizes are cut down and nothing else: fewer limbs, shorter draws, a smaller modulus. What the pages say about integers that
do not wrap around is asserted of these sizes too, in each module.
"""
