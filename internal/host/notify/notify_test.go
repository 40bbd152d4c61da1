package notify_test

import (
	"bytes"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host/notify"
)

// systemd is the socket on which it listens; read takes the words that came.
func systemd(t *testing.T) (read func() []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	check(t, err)
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() []string {
		// A last word of ours marks the end: datagrams come in order.
		me, err := net.Dial("unixgram", path)
		check(t, err)
		defer me.Close()
		_, err = me.Write([]byte("END"))
		check(t, err)
		var words []string
		for buffer := make([]byte, 4096); ; {
			n, err := conn.Read(buffer)
			check(t, err)
			if string(buffer[:n]) == "END" {
				return words
			}
			words = append(words, string(buffer[:n]))
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWords(t *testing.T) {
	read := systemd(t)
	check(t, notify.Ready())
	check(t, notify.Status("idle: clean, in the pool, 4m left"))
	check(t, notify.Status("job \"a\nMAINPID=1\r\x00\""))
	check(t, notify.Watchdog())
	check(t, notify.Stopping())
	want := []string{
		"READY=1", "STATUS=idle: clean, in the pool, 4m left", "STATUS=job \"a MAINPID=1  \"", "WATCHDOG=1", "STOPPING=1",
	}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}

func TestNobodyListens(t *testing.T) {
	say := func() []error {
		return []error{notify.Ready(), notify.Status("x"), notify.Watchdog(), notify.Stopping()}
	}
	t.Setenv("NOTIFY_SOCKET", "")
	for _, err := range say() {
		if err != nil {
			t.Errorf("without a socket: %v", err)
		}
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "missing"))
	for i, err := range say() {
		if name := []string{"READY", "STATUS", "WATCHDOG", "STOPPING"}[i]; err == nil || !strings.Contains(err.Error(), "sd_notify "+name+":") {
			t.Errorf("to a socket that is missing: %v", err)
		}
	}
}

func TestStepsFeedTheWatchdog(t *testing.T) {
	read := systemd(t)
	stepped := notify.Stepped(hclog.NewNullLogger())
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		after time.Duration
		fed   int
	}{
		{0, 1}, {time.Millisecond, 0}, {4 * time.Second, 0}, {5 * time.Second, 1}, {9 * time.Second, 0}, {50 * time.Second, 1},
		{-time.Hour, 1}, {-time.Hour + time.Second, 0},
	} {
		stepped(start.Add(tt.after))
		if words := read(); len(words) != tt.fed || (tt.fed == 1 && words[0] != "WATCHDOG=1") {
			t.Errorf("%s after the first step: said %q, want %d words", tt.after, words, tt.fed)
		}
	}
}

func TestUnfedWatchdogIsLoggedOnce(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "missing"))
	var log bytes.Buffer
	stepped := notify.Stepped(hclog.New(&hclog.LoggerOptions{Output: &log}))
	for i := range 5 {
		stepped(time.Unix(int64(60*i), 0))
	}
	if n := strings.Count(log.String(), "cannot feed the watchdog"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, &log)
	}
}

// An agent that waits for others as long as it may is not taken for one that
// stands still.
func TestWatchdogOutlastsTwoSteps(t *testing.T) {
	if most := notify.WatchdogLimit / 2; agent.LongestStep >= most {
		t.Errorf("a step may take %s, and has to stay below %s", agent.LongestStep, most)
	}
}
