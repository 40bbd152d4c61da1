//go:build race

package racepass

const raceEnabled = true
