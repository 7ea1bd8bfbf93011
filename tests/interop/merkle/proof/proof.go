// Package proof is v0.0.2's, and a function that refuses.
package proof

import (
	"errors"

	"github.com/transparency-dev/merkle"
	tagged "tagged.test/merkle/proof"
)

// VerifyConsistency is v0.0.2's.
func VerifyConsistency(hasher merkle.LogHasher, size1, size2 uint64, proof [][]byte, root1, root2 []byte) error {
	return tagged.VerifyConsistency(hasher, size1, size2, proof, root1, root2)
}

// VerifySubtreeConsistency is newer than v0.0.2. The witness of these tests does not sign subtrees.
func VerifySubtreeConsistency(merkle.LogHasher, uint64, uint64, uint64, [][]byte, []byte, []byte) error {
	return errors.New("not in merkle v0.0.2")
}
