// Package replay plays recorded jobs on a fleet that could have served them: the use-cases of internal/fleet over a store in memory, with a
// cloud, a GitHub and hosts of its own, in virtual time on one goroutine. So the same history and the same policy always have the same outcome.
//
// Each job is a request for one host when it was created, and a release when it is over. What happens is a queue of events: time goes from
// one to the next, and a quiet night costs nothing. Nothing fails in this world: no machine is lost, and GitHub always answers. So the sweeps
// that look for what failed are left out; those over due hosts, warm pools and idle hosts run at their intervals.
package replay
