package policy

import "slices"

// Role is what an operator may do.
type Role string

// The roles: each may do all that those before it may.
const (
	RoleViewer   Role = "viewer"   // reads
	RoleOperator Role = "operator" // and orders hosts, releases runs, refreshes, holds
	RoleAdmin    Role = "admin"    // and ends hosts by order
)

// Roles lists every role, the least first.
var Roles = []Role{RoleViewer, RoleOperator, RoleAdmin}

// Includes reports whether r may do all that least may. No unknown role
// includes any, nor is any unknown one included.
func (r Role) Includes(least Role) bool {
	have, want := slices.Index(Roles, r), slices.Index(Roles, least)
	return have >= 0 && want >= 0 && have >= want
}
