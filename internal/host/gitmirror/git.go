package gitmirror

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// git runs git in a bare repository. It reads no configuration but that of the repository, runs no hook, asks for no password, and speaks with
// the server of the mirror alone.
type git struct {
	dir string
	env []string
	// blocks bounds each file that it writes, in blocks of 512 bytes.
	blocks uint64
}

// path is for git and its own programs.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func (m Mirror) git(dir string) git {
	scheme, _, _ := strings.Cut(m.URL, "://")
	settings := [][2]string{
		{"protocol.allow", "never"},
		{"protocol." + scheme + ".allow", "always"},
		{"http.followRedirects", "false"}, // which would carry the token elsewhere
		{"fetch.unpackLimit", "1"},        // always a pack
		{"core.hooksPath", "/dev/null"},
		{"gc.auto", "0"},
		{"pack.threads", "1"},
	}
	if m.Token != "" {
		// The form of actions/checkout (src/git-auth-helper.ts). In the environment no other user can read it.
		basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + m.Token.Reveal()))
		settings = append(settings, [2]string{"http.extraHeader", "Authorization: Basic " + basic})
	}
	g := git{dir: dir, blocks: m.Largest / 512}
	g.env = append([]string{path, "HOME=" + dir, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0"}, m.Env...)
	g.env = append(g.env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(settings)))
	for i, s := range settings {
		g.env = append(g.env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return g
}

// saidLimit bounds what an error repeats of git's words, in bytes.
const saidLimit = 300

func (g git) run(ctx context.Context, args ...string) error {
	_, err := g.output(ctx, args...)
	return err
}

// output is what git writes. When the context ends, so do git and all that it has started.
func (g git) output(ctx context.Context, args ...string) ([]byte, error) {
	limited := append([]string{"-c", `ulimit -f "$0" && exec git --git-dir=. "$@"`, strconv.FormatUint(g.blocks, 10)}, args...)
	cmd := exec.CommandContext(ctx, "/bin/sh", limited...)
	cmd.Dir, cmd.Env = g.dir, g.env
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	words := strings.Join(strings.Fields(strings.ToValidUTF8(said.String(), "?")), " ")
	return nil, fmt.Errorf("git %s: %w: %.*q", args[0], err, saidLimit, words)
}

// sha is the commit of a ref.
func (g git) sha(ctx context.Context, ref string) (string, error) {
	out, err := g.output(ctx, "show-ref", "--verify", "--hash", ref)
	return strings.TrimSpace(string(out)), err
}
