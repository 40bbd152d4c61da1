package imds_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/awstest/imdstest"
	"github.com/remuda-ci/remuda/internal/host/imds"
)

// interval between looks in tests.
const interval = time.Millisecond

// watch watches until the test ends.
func watch(t *testing.T, s *imdstest.Service, log hclog.Logger) <-chan time.Time {
	t.Helper()
	c := client(t, s, nil)
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan time.Time, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		imds.Watch(ctx, c, interval, log, func(at time.Time) { told <- at })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return told
}

// looked waits until the service was asked n more times for a notice.
func looked(t *testing.T, s *imdstest.Service, n int) {
	t.Helper()
	count := func() (n int) {
		for _, call := range s.Calls() {
			if strings.HasSuffix(call.Path, "/spot/instance-action") {
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
	s := imdstest.Start(t, machine())
	told := watch(t, s, hclog.NewNullLogger())
	looked(t, s, 3)
	select {
	case at := <-told:
		t.Fatalf("told of an end at %s without a notice", at)
	default:
	}
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := []time.Time{first, first.Add(time.Minute)}
	var got []time.Time
	for _, at := range want {
		s.Change(func(m *imdstest.Machine) { m.InterruptionAt = at })
		got = append(got, <-told)
		looked(t, s, 3)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if len(told) > 0 {
		t.Errorf("told %d times more", len(told))
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
	s := imdstest.Start(t, machine())
	s.Fail(imdstest.Fault{Path: "/latest/meta-data/spot", Status: http.StatusForbidden})
	var log lines
	told := watch(t, s, hclog.New(&hclog.LoggerOptions{Output: &log}))
	looked(t, s, 5)
	if len(told) > 0 {
		t.Errorf("told of an end at %s without a notice", <-told)
	}
	if n := strings.Count(log.String(), "cannot look for an interruption notice"); n != 1 {
		t.Errorf("said %d times that it cannot look, want once:\n%s", n, &log)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.Change(func(m *imdstest.Machine) { m.InterruptionAt = at })
	s.Heal()
	if got := <-told; !got.Equal(at) {
		t.Errorf("told of an end at %s, want %s", got, at)
	}
}
