package script_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/host/script"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	check(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestRun(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text  string
		limit time.Duration
		want  string // in the error; "" for none
		log   string
	}{
		"none needed":                {"echo hello; printf unended", time.Minute, "", "line=unended"},
		"fails":                      {"echo broken >&2; exit 3", time.Minute, "exit status 3: broken", "line=broken"},
		"a command in it fails":      {"false; echo never", time.Minute, "exit status 1", ""},
		"a command in a pipe fails":  {"false | cat; echo never", time.Minute, "exit status 1", ""},
		"too slow":                   {"echo begun; trap '' TERM; sleep 100", time.Second, "time limit of 1s: begun", ""},
		"leaves something running":   {"sleep 5 & echo $!", time.Minute, "", ""},
		"says much":                  {"head -c 1000000 /dev/zero | tr '\\0' y", time.Minute, "", "output truncated: bytes=934464"},
		"does not inherit variables": {`test -z "$GOPATH$PWDX" && test "$HOME" = /root`, time.Minute, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			log := hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Debug})
			err := script.Run(t.Context(), write(t, test.text), test.limit, log)
			if (err == nil) != (test.want == "") || !strings.Contains(fmt.Sprint(err), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if !strings.Contains(out.String(), test.log) || strings.Contains(out.String(), "never") || out.Len() > 4*1000000 {
				t.Errorf("log of %d bytes without %q", out.Len(), test.log)
			}
		})
	}
}

// With its limit the whole group of a script ends.
func TestGroupIsKilled(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	check(t, unix.Mkfifo(pipe, 0o600))
	f, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	check(t, err)
	defer f.Close()
	text := "sleep 1000 >" + pipe + " & sleep 1000"
	if err := script.Run(t.Context(), write(t, text), time.Second, hclog.NewNullLogger()); err == nil {
		t.Error("the script was not killed")
	}
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // once no process has it open for writing
		t.Errorf("error %v", err)
	}
}
