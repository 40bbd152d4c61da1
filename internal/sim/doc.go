// Package sim is the deterministic simulator of a whole fleet: the real use-cases of
// internal/fleet and the real logic of internal/agent, on a simulated store, queue, cloud,
// GitHub and hosts that fail in the ways in which the real ones do.
//
// Everything runs on one goroutine, from one seed, in virtual time. Before and after every
// call of a port the world may kill the caller, as kill -9 would, or let others act first,
// for a moment or for minutes. The rules of docs/design.md are checked on every write and
// every effect. At the end the faults stop, everything must settle, and nothing may be left
// over. The same seed gives the same life, event for event.
//
// Below it, each importing those before it: engine (time, chance, crashes), world (the store,
// the queue, the cloud, GitHub and the hosts) and rules. This package has the lives: replicas
// of controld, callers, workers, operators and when faults strike.
//
// A story (Story, testdata/stories) is a scripted life without chance, for readers. The
// planted bugs (testdata/bugs) are mistakes that the rules must catch.
package sim
