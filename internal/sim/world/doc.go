// Package world is what a simulated fleet acts on: the store with its late reads, the queue,
// the cloud and its notices, GitHub, runner services, and booted hosts with their agents.
//
// The ports (Store, QueuePort, ComputePort and so on) are how a replica of controld reaches
// them: each call may be refused, lose its answer, or end the caller. A world knows neither
// the rules nor who calls it. What happens in it goes to its observers: see events.go.
package world
