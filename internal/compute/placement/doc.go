// Package placement decides which machines a launch order becomes: their ids, types and zones. It is pure,
// and shared by the adapters that stand in for EC2's own placement.
package placement
