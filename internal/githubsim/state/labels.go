package state

import (
	"slices"
	"strings"
)

// defaultLabels are those that config.sh adds to the runner's own (actions/runner 2.336,
// src/Runner.Listener/Configuration/ConfigurationManager.cs 657-662 and 691-696).
var defaultLabels = []string{"self-hosted", "Linux", "X64"}

// MakeLabels puts the default labels before the custom ones, unless the runner has exactly those that it was given: a machine of
// GitHub's own, a runner with a JIT configuration, and one that registers with --no-default-labels.
func MakeLabels(custom []string, alone bool) []Label {
	out := []Label{}
	add := func(name, kind string) {
		name = strings.TrimSpace(name)
		if name == "" || slices.ContainsFunc(out, func(l Label) bool { return strings.EqualFold(l.Name, name) }) {
			return
		}
		out = append(out, Label{ID: IDOf(name), Name: name, Type: kind})
	}
	if !alone {
		for _, n := range defaultLabels {
			add(n, "read-only")
		}
	}
	for _, n := range custom {
		kind := "custom"
		if slices.ContainsFunc(defaultLabels, func(d string) bool { return strings.EqualFold(d, strings.TrimSpace(n)) }) {
			kind = "read-only"
		}
		add(n, kind)
	}
	return out
}
