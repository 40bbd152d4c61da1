// Package rules holds a world against the rules of docs/design.md: a Watcher observes every
// write and every effect, remembers what it needs, and ends the life at the first broken rule.
package rules
