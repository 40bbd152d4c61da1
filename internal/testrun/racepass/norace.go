//go:build !race

package racepass

const raceEnabled = false
