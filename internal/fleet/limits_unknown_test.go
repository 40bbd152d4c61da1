package fleet_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/warmrequest"
)

// blindCloud cannot be asked about the launches of one request.
type blindCloud struct {
	fleet.Compute
	request string
}

func (c blindCloud) Launched(ctx context.Context, o lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	if o.RequestID == c.request {
		return nil, errors.New("it is refused")
	}
	return c.Compute.Launched(ctx, o)
}

// cutShort fills two places of the default pool by a launch that was cut short at a
// time, and made nothing.
func (w *world) cutShort(ctx context.Context, request string, at time.Time) {
	w.t.Helper()
	q := lifecycle.Request{Repository: repository, RunID: "1", RequestID: request, Spec: lifecycle.Spec{Pool: "default"}}
	if err := w.store.CreateRequest(ctx, q); err != nil {
		w.t.Fatal(err)
	}
	a, err := w.store.QuotaLedger(ctx, ofPool)
	if err != nil {
		w.t.Fatal(err)
	}
	e := ledger.Reservation{Repository: repository, RunID: "1", RequestID: request, Launch: 1, Hosts: 2, At: at}
	if _, err := w.store.UpdateQuotaLedger(ctx, a.With(e)); err != nil {
		w.t.Fatal(err)
	}
}

// A reservation that may or may not be needed does not keep the room behind it from
// other requests.
func TestRoomBehindRoomThatCannotBeJudged(t *testing.T) {
	logs := &lockedBuffer{}
	options := func(o *fleet.Options) {
		atMost(4)(o)
		o.Compute = blindCloud{o.Compute, "first"}
		o.Log = hclog.New(&hclog.LoggerOptions{Output: logs})
	}
	inBubbleOf(t, options, func(ctx context.Context, t *testing.T, w *world) {
		w.cutShort(ctx, "first", time.Now().Add(-2*time.Minute))
		w.cutShort(ctx, "second", time.Now().Add(-2*time.Minute))
		w.mustProvision(ctx, demandOf("acme/lib", "9", 2, 2, time.Minute))
		if used := w.used(ofPool); used != 4 {
			t.Errorf("%d hosts count, want those of the first and of the new request", used)
		}
		if unknown := regexp.MustCompile(`not known whether hosts .* request=(\w+)`).FindAllStringSubmatch(logs.String(), -1); len(unknown) != 1 || unknown[0][1] != "first" {
			t.Errorf("the log says of %q that it is not known whether they are needed, want the first request alone", unknown)
		}
	})
}

// An audit asks no more about the launches of a full pool while the cloud is away, and changes none of their reservations.
func TestAnAuditWhileTheCloudIsAway(t *testing.T) {
	cloud := &absentCloud{}
	options := func(o *fleet.Options) {
		atMost(6)(o)
		cloud.Compute, o.Compute = o.Compute, cloud
	}
	inBubbleOf(t, options, func(ctx context.Context, t *testing.T, w *world) {
		for _, request := range []string{"first", "second", "third"} {
			w.cutShort(ctx, request, time.Now().Add(-2*time.Minute))
		}
		p := w.newProvision(w.fleet, demandOf("acme/lib", "9", 6, 6, time.Minute))
		cloud.away = true
		stepUntil(ctx, t, p, func() bool { return p.Request().QuotaReason != "" })
		if used := w.used(ofPool); used != 6 || cloud.asked != 1 {
			t.Errorf("%d hosts count, and the cloud was asked %d times; want 6 and once", used, cloud.asked)
		}
		cloud.away = false
		asked := cloud.asked
		time.Sleep(10 * time.Second)
		stepUntil(ctx, t, p, func() bool { return p.Request().Launch != nil })
		if n := cloud.asked - asked; n != 3 {
			t.Errorf("one audit asked %d times for three launches", n)
		}
	})
}

// absentCloud counts how often it is asked about a launch, and does not answer while it is away.
type absentCloud struct {
	fleet.Compute
	asked int
	away  bool
}

func (c *absentCloud) Launched(ctx context.Context, o lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	if c.asked++; c.away {
		return nil, &lifecycle.UnavailableError{What: "listing", Err: errors.New("no answer")}
	}
	return c.Compute.Launched(ctx, o)
}

// A request waits for room also while it is not known which requests need it.
func TestARequestWaitsForRoomThatCannotBeJudged(t *testing.T) {
	options := func(o *fleet.Options) {
		atMost(2)(o)
		o.Compute = blindCloud{o.Compute, "first"}
	}
	inBubbleOf(t, options, func(ctx context.Context, t *testing.T, w *world) {
		w.cutShort(ctx, "first", time.Now().Add(-2*time.Minute))
		time.AfterFunc(2*time.Minute, func() {
			a, err := w.store.QuotaLedger(ctx, ofPool)
			if err != nil {
				t.Error(err)
			}
			a.Reservations = nil
			if _, err := w.store.UpdateQuotaLedger(ctx, a); err != nil {
				t.Error(err)
			}
		})
		w.mustProvision(ctx, demandOf("acme/lib", "9", 1, 1, 10*time.Minute))
	})
}

// damagedRow is a store in which one request cannot be read.
type damagedRow struct {
	fleet.Store
	run string
}

func (s damagedRow) Request(ctx context.Context, repository, run, id string) (lifecycle.Request, error) {
	if run == s.run {
		return lifecycle.Request{}, errors.New("the row is damaged")
	}
	return s.Store.Request(ctx, repository, run, id)
}

// A warm pool that cannot be looked at, or is full of room that cannot be judged,
// keeps no other from its hosts.
func TestAWarmPoolThatFailsKeepsNoOtherWaiting(t *testing.T) {
	tests := map[string]struct {
		options func(*fleet.Options)
		full    bool
	}{
		"its room cannot be judged": {func(o *fleet.Options) { o.Compute = blindCloud{o.Compute, "first"} }, true},
		"its row cannot be read": {func(o *fleet.Options) {
			o.Store = damagedRow{o.Store, warmrequest.ID(lifecycle.RequestWarm, "default")}
		}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			options := func(o *fleet.Options) {
				withWarm(warmPool(1), func(p *fleet.Pool) { p.Maximum = new(2) })(o)
				other, warm := o.Pools["default"], warmPool(1)
				warm.Spec.Pool = "zeta"
				other.Warm, other.Maximum = &warm, nil
				o.Pools["zeta"] = other
				tt.options(o)
			}
			inBubbleOf(t, options, func(ctx context.Context, t *testing.T, w *world) {
				if tt.full {
					w.cutShort(ctx, "first", time.Now().Add(-2*time.Minute))
				}
				_ = w.fleet.Drive(ctx, w.fleet.NewWarmSweep(), 0) // which says what it could not do
				n := 0
				for _, r := range w.records() {
					if r.Pool == "zeta" {
						n++
					}
				}
				if n != 1 {
					t.Errorf("the other pool has %d hosts, want 1", n)
				}
			})
		})
	}
}

// Times written by a replica whose clock is ahead keep no room from a request: neither that
// of a look, nor that of a launch which was cut short.
func TestRoomAfterAClockThatIsAhead(t *testing.T) {
	tests := map[string]struct{ looked, cut time.Duration }{
		"of a look":   {looked: time.Hour, cut: -2 * time.Minute},
		"of a launch": {looked: -time.Hour, cut: time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, atMost(2), func(ctx context.Context, t *testing.T, w *world) {
				w.cutShort(ctx, "first", time.Now().Add(tt.cut))
				a, err := w.store.QuotaLedger(ctx, ofPool)
				if err != nil {
					t.Fatal(err)
				}
				a.AuditedAt = time.Now().Add(tt.looked)
				if _, err := w.store.UpdateQuotaLedger(ctx, a); err != nil {
					t.Fatal(err)
				}
				w.mustProvision(ctx, demandOf("acme/lib", "9", 1, 1, 5*time.Minute))
			})
		})
	}
}

// An audit frees the room of a launch that was cut short a minute ago, and not a moment sooner: the cloud may show its machines late.
func TestWhenTheRoomOfALaunchThatWasCutShortIsFree(t *testing.T) {
	for ago, used := range map[time.Duration]int{time.Minute - time.Nanosecond: 2, time.Minute: 0} {
		t.Run(ago.String(), func(t *testing.T) {
			inBubbleOf(t, atMost(4), func(ctx context.Context, t *testing.T, w *world) {
				w.cutShort(ctx, "first", time.Now().Add(-time.Hour)) // for which there is an audit
				w.cutShort(ctx, "second", time.Now().Add(-ago))
				w.sweepOnce(ctx, w.fleet.NewCloudSweep())
				if got := w.used(ofPool); got != used {
					t.Errorf("%d hosts count, want %d", got, used)
				}
			})
		})
	}
}
