//go:build testhost

package cachestore

import "testing"

// TestOverlay needs root.
func TestOverlay(t *testing.T) { testMechanism(t, Overlay{}) }
