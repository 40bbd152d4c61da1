package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

var restNow = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// restPolicy keeps the newest three of a group awake.
func restPolicy() lifecycle.Policy {
	p := lifecycle.DefaultPolicy()
	p.IdleTime, p.Awake = 4*time.Hour, 3
	return p
}

// waits is a host that was pooled so many minutes ago.
func idles(minutes int, change ...func(*lifecycle.Record)) lifecycle.Record {
	r := lifecycle.Record{
		HostKey: fmt.Sprint(minutes), State: lifecycle.StateIdle, TrustKey: "acme/app", Uses: 1,
		PooledAt: restNow.Add(-time.Duration(minutes) * time.Minute), Threshold: restNow.Add(2 * time.Hour),
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func rests(r *lifecycle.Record) { r.RestingAt = restNow.Add(-time.Minute) }

func TestRest(t *testing.T) {
	newest := []lifecycle.Record{idles(1), idles(6), idles(7)}
	with := func(change func(*lifecycle.Record)) []lifecycle.Record {
		return []lifecycle.Record{idles(1), idles(6, change), idles(7)}
	}
	for name, tt := range map[string]struct {
		newest []lifecycle.Record
		host   lifecycle.Record
		want   lifecycle.Action
		look   time.Duration
	}{
		"three newer ones are awake":      {newest, idles(8), lifecycle.ActionRest, 8 * time.Minute},
		"it is one of the newest":         {newest, idles(7), lifecycle.ActionKeep, 7 * time.Minute},
		"only two are newer":              {newest[:2], idles(8), lifecycle.ActionKeep, 8 * time.Minute},
		"a newer one rests":               {with(rests), idles(8), lifecycle.ActionKeep, 8 * time.Minute},
		"a newer one is held":             {with(func(r *lifecycle.Record) { r.Hold = restNow.Add(time.Hour) }), idles(8), lifecycle.ActionKeep, 8 * time.Minute},
		"a newer one retires":             {with(func(r *lifecycle.Record) { r.Retiring = true }), idles(8), lifecycle.ActionKeep, 8 * time.Minute},
		"a newer one ends soon":           {with(func(r *lifecycle.Record) { r.Threshold = restNow.Add(time.Second) }), idles(8), lifecycle.ActionKeep, 8 * time.Minute},
		"it rests, and is still spare":    {newest, idles(50, rests), lifecycle.ActionKeep, 50 * time.Minute},
		"it rests, and is needed by now":  {[]lifecycle.Record{idles(6), idles(50, rests)}, idles(50, rests), lifecycle.ActionWake, 50 * time.Minute},
		"it is looked at before its end":  {newest, idles(200, rests), lifecycle.ActionKeep, 2 * time.Hour},
		"the listing has more than it is": {append(newest, idles(8)), idles(8), lifecycle.ActionRest, 8 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			d := policy.Rest(restPolicy(), tt.newest, tt.host, restNow)
			if d.Action != tt.want || !d.CheckAt.Equal(restNow.Add(tt.look)) || d.Reason == "" || d.Code == "" {
				t.Errorf("got %s, next look after %s, because %q (%s); want %s after %s", d.Action, d.CheckAt.Sub(restNow), d.Reason, d.Code, tt.want, tt.look)
			}
			after, err := lifecycle.Apply(tt.host, d, restNow, restPolicy())
			if want := tt.host.Resting() != (d.Action != lifecycle.ActionKeep); err != nil || after.Resting() != want {
				t.Errorf("the record rests: %t, error %v", after.Resting(), err)
			}
		})
	}
}

func TestAsleep(t *testing.T) {
	held := func(r *lifecycle.Record) { rests(r); r.Hold = restNow.Add(time.Hour) }
	newest := []lifecycle.Record{idles(1), idles(6, rests), idles(7, held), idles(8, rests)}
	asleep, d := policy.Asleep(restPolicy(), newest, restNow)
	if diff := cmp.Diff([]lifecycle.Record{newest[1]}, asleep); diff != "" || d.Action != lifecycle.ActionWake || d.Reason == "" {
		t.Errorf("%+v; to be woken (-want +got):\n%s", d, diff)
	}
	if asleep, _ := policy.Asleep(restPolicy(), newest[:1], restNow); len(asleep) > 0 {
		t.Errorf("%d to be woken where none rests", len(asleep))
	}
}
