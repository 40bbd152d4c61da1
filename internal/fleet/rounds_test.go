//go:build !soak

package fleet_test

// contentionRounds is how often the contention test runs: more in make soak.
const contentionRounds = 10
