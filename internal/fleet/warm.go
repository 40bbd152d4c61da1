package fleet

import "github.com/remuda-ci/remuda/internal/lifecycle"

// WarmPool is what a pool launches ahead of need: fresh hosts, which no run has
// used, for the first run of anybody that claims one.
type WarmPool struct {
	// Spec is what each host is launched with: its resource and usage class,
	// instance types and whether spot may fall back to on-demand.
	Spec lifecycle.Spec
}
