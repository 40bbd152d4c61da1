package imds_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/awstest/imdstest"
	"github.com/remuda-ci/remuda/internal/host/imds"
)

// interval between looks in tests.
const interval = time.Millisecond

// kind is one kind of notice, and what a machine says of it.
type kind struct {
	watch func(context.Context, *sdk.Client, time.Duration, hclog.Logger, func(time.Time))
	path  string
	on    func(m *imdstest.Machine, at time.Time)
}

var (
	interruption = kind{imds.Watch, "spot/instance-action", func(m *imdstest.Machine, at time.Time) { m.InterruptionAt = at }}
	rebalance    = kind{imds.WatchRebalance, "events/recommendations/rebalance", func(m *imdstest.Machine, at time.Time) { m.RebalanceAt = at }}
	kinds        = map[string]kind{"interruption": interruption, "rebalance": rebalance}
)

// start watches until the test ends.
func (k kind) start(t *testing.T, s *imdstest.Service, log hclog.Logger) <-chan time.Time {
	t.Helper()
	c := client(t, s, nil)
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan time.Time, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.watch(ctx, c, interval, log, func(at time.Time) { told <- at })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return told
}

// looked waits until the service was asked n more times for a notice.
func (k kind) looked(t *testing.T, s *imdstest.Service, n int) {
	t.Helper()
	count := func() (n int) {
		for _, call := range s.Calls() {
			if strings.HasSuffix(call.Path, k.path) {
				n++
			}
		}
		return n
	}
	for want := count() + n; count() < want; time.Sleep(interval) {
		if t.Context().Err() != nil {
			t.Fatal("the service is not asked any more")
		}
	}
}

func TestNoticeIsToldOnce(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			s := imdstest.Start(t, machine())
			told := k.start(t, s, hclog.NewNullLogger())
			k.looked(t, s, 3)
			select {
			case at := <-told:
				t.Fatalf("told of %s without a notice", at)
			default:
			}
			first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			want := []time.Time{first, first.Add(time.Minute)}
			var got []time.Time
			for _, at := range want {
				s.Change(func(m *imdstest.Machine) { k.on(m, at) })
				got = append(got, <-told)
				k.looked(t, s, 3)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if len(told) > 0 {
				t.Errorf("told %d times more", len(told))
			}
		})
	}
}

// A machine that EC2 recommends to leave is not one that it takes.
func TestNoticesAreToldApart(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]struct{ set, other kind }{
		"a recommendation is no interruption":  {rebalance, interruption},
		"an interruption is no recommendation": {interruption, rebalance},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := imdstest.Start(t, machine())
			s.Change(func(m *imdstest.Machine) { tt.set.on(m, at) })
			told := tt.other.start(t, s, hclog.NewNullLogger())
			tt.other.looked(t, s, 3)
			if len(told) > 0 {
				t.Errorf("told of %s", <-told)
			}
		})
	}
}

// What cannot be read is no notice.
func TestMalformedNotice(t *testing.T) {
	for name, look := range map[string]func(context.Context, *sdk.Client) (time.Time, error){
		"interruption": imds.Interruption, "rebalance": imds.Rebalance,
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
				_, _ = w.Write([]byte(`{"time": 5, "noticeTime": "soon"}`))
			}))
			t.Cleanup(server.Close)
			if at, err := look(t.Context(), client(t, &imdstest.Service{URL: server.URL}, nil)); err == nil || !at.IsZero() {
				t.Errorf("notice of %s, error %v", at, err)
			}
		})
	}
}

// lines collects a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestSilenceOfTheServiceIsNoNotice(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			s := imdstest.Start(t, machine())
			s.Fail(imdstest.Fault{Path: "/latest/meta-data/" + k.path, Status: http.StatusForbidden})
			var log lines
			told := k.start(t, s, hclog.New(&hclog.LoggerOptions{Output: &log}))
			k.looked(t, s, 5)
			if len(told) > 0 {
				t.Errorf("told of %s without a notice", <-told)
			}
			if n := strings.Count(log.String(), "instance metadata does not answer"); n != 1 {
				t.Errorf("said %d times that it cannot look, want once:\n%s", n, &log)
			}
			at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			s.Change(func(m *imdstest.Machine) { k.on(m, at) })
			s.Heal()
			if got := <-told; !got.Equal(at) {
				t.Errorf("told of %s, want %s", got, at)
			}
		})
	}
}
