// Package ports holds the interfaces by which a fleet reaches its store, its queue, the cloud and GitHub, and
// the settings that its rooms share: pools, resource classes and intervals.
package ports
