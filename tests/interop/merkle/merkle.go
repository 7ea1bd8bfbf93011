// Package merkle stands in for github.com/transparency-dev/merkle at the untagged commit that the witness names, which
// not every module proxy has. Everything here is the tagged v0.0.2, under another path (see ../go.mod); the one function
// that it lacks belongs to a feature of the witness that is not switched on.
package merkle

import tagged "tagged.test/merkle"

// LogHasher is v0.0.2's.
type LogHasher = tagged.LogHasher
