// Package outer asks other servers whether the pages are there to which the site links. It asks one address after another, and pauses between two
// of one server.
package outer
