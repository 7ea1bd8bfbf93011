"""What is proved, whatever the proof system: one module for each kind of statement, with its public values and private
inputs.

- `retrieve`: a record lists the positions that its tenant's mechanism selects (claims A2 to A4)
- `embed`: a record's query vector follows from the query's tokens (claim A1)
- `sample`: what is drawn from the window's seed: a sampled tenant's kept positions, a slot's noise or coins
- `coalition`: the accounts of a window form no larger clusters than it declares

Prover and verifier build the public values from published entries alone (`tenant`); none is ever read from a proof.
"""
