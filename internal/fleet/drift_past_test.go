package fleet_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// A host that cannot be written keeps no other from being retired, unless the store is away. The sweep says so, except where another
// replica wrote first.
func TestADriftedHostThatCannotBeWritten(t *testing.T) {
	for name, test := range map[string]struct {
		err, want error
		others    int // are retired
	}{
		"it is damaged":               {errDamaged, errDamaged, 1},
		"another replica wrote first": {lifecycle.ErrConflict, nil, 1},
		"the store is away":           {lifecycle.ErrUnavailable, lifecycle.ErrUnavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rows, v := &unwritable{}, &templateVersion{current: "7"}
			options := func(o *fleet.Options) { rows.Store, o.Store, o.TemplateVersion = o.Store, rows, v.of }
			inBubbleOf(t, options, func(ctx context.Context, t *testing.T, w *world) {
				hosts := w.mustProvision(ctx, demand("1", "a", 8)) // a fourth, two, go in one sweep
				w.release(ctx, "1", true)
				first := slices.MinFunc(w.records(lifecycle.StateIdle), func(a, b lifecycle.Record) int {
					return cmp.Or(a.PooledAt.Compare(b.PooledAt), strings.Compare(a.HostKey, b.HostKey))
				})
				v.current, rows.host, rows.err = "8", first.HostKey, test.err
				if err := w.fleet.Drive(ctx, w.fleet.NewCloudSweep(), 0); !errors.Is(err, test.want) {
					t.Errorf("the sweep ended with error %v, want %v", err, test.want)
				}
				retired := 0
				for _, h := range hosts {
					if w.record(h.HostKey).Retiring {
						retired++
					}
				}
				if retired != test.others {
					t.Errorf("%d hosts are retired, want %d", retired, test.others)
				}
			})
		})
	}
}
