// Package compact is v0.0.2's, as far as its own package proof needs it.
package compact

import tagged "tagged.test/merkle/compact"

// NodeID is v0.0.2's.
type NodeID = tagged.NodeID

// NewNodeID is v0.0.2's.
func NewNodeID(level uint, index uint64) NodeID { return tagged.NewNodeID(level, index) }

// RangeSize is v0.0.2's.
func RangeSize(begin, end uint64) int { return tagged.RangeSize(begin, end) }

// RangeNodes is v0.0.2's.
func RangeNodes(begin, end uint64, ids []NodeID) []NodeID { return tagged.RangeNodes(begin, end, ids) }
