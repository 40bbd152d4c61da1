package top_test

import (
	"testing"

	tea "charm.land/bubbletea/v2"
)

// BenchmarkKey is a key and the screen after it, in a fleet of 10,000 hosts.
func BenchmarkKey(b *testing.B) {
	p := newPerson(b, 10_000)
	for b.Loop() {
		p.model, _ = p.model.Update(tea.KeyPressMsg{Code: tea.KeyDown})
		if p.model.View().Content == "" {
			b.Fatal("nothing is shown")
		}
	}
}
