// Package reset returns a host to the state before its first run, and then verifies that.
//
// Record remembers what the host has before its first run: the baseline. Run ends everything that runs have left and
// renews what they write to. Verify compares the result with the baseline, as if something else had done the reset.
//
// It runs as root, in a unit of its own and in the host's own namespaces, that is without PrivateTmp= and the like. Any
// doubt that remains at the end is an error, and a host with an error serves no other run: a good host may be taken for a
// bad one, never the reverse. A job that has had root's rights can hide from any such verification. Hosts of pools that
// allow that serve one trust key, as every host does, and are better not reused at all.
//
// Each step looks at what is there and not at what was done, so a reset can be killed anywhere and run again.
package reset
