// Package rfc6962 is v0.0.2's.
package rfc6962

import tagged "tagged.test/merkle/rfc6962"

// DefaultHasher is v0.0.2's.
var DefaultHasher = tagged.DefaultHasher
