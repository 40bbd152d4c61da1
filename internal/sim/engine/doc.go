// Package engine is what every simulated life runs on: virtual time with its events, actors
// that a crash or a pause may hit at any call, the faults and the chance by which they strike,
// the trace of what happened, and counts of it.
//
// Everything comes from one seed: the order of draws is part of a life, and a change of it
// makes other lives of the same seeds.
package engine
