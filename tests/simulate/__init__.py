"""A window simulator: small, complete windows whose parties misbehave in each way that has a name.

`windows` runs an honest service with keys, salts, dates and texts that are always the same, so that everything but its
proofs is the same bytes each time. `faults` changes what came of it in one way each, `answers` answers and proves again
what a change touches, so that nothing else is wrong, and `cases` writes the folders of vectors/windows, with what a
verifier has to find in each. `recorded` runs chains of windows, whose service proves while it runs, and `pooled` has
their cases. Proofs hold randomness that nobody can fix: those made once are in `made`'s file and are
used again.

    python vectors/windows.py            write the cases that are missing, and prove what no stored proof proves
    python vectors/windows.py --check    make every case again from the stored proofs, and compare byte for byte
"""
