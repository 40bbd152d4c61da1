//go:build soak

package fleet_test

const contentionRounds = 50
