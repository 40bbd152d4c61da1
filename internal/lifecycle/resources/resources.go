// Package resources says what a fleet keeps in the cloud, and what is done to it.
package resources

// Resource is something that a fleet's adapters keep in the cloud, such as a table, a queue or a launch
// template, and what was done to make it match the configuration.
type Resource struct {
	// Kind is "table", "index", "queue" or "launch-template".
	Kind string
	// Name is the resource's own, such as "remuda-instances".
	Name string
	// Change is what was done, or in a dry run would be.
	Change Change
	// Detail says in a sentence what was missing or different.
	Detail string
}

// Change is what happens to a resource.
type Change string

// The changes. A resource that matches already is not reported.
const (
	Created Change = "created"
	Updated Change = "updated"
)
