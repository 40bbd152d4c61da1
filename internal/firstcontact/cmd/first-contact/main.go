// Command first-contact holds what Remuda assumes about GitHub against GitHub itself, or against the stand-in: see
// docs/first-contact.md. It exits 0 if nothing is refuted, 1 if something is, and 2 if the checks could not be made or something that
// they made is left.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/firstcontact"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

func main() { os.Exit(findings.Program("first-contact", run)) }

func run(ctx context.Context, args []string, out, progress io.Writer) (int, error) {
	var o firstcontact.Options
	flags := flag.NewFlagSet("first-contact", flag.ContinueOnError)
	flags.StringVar(&o.Repository, "repository", "", "`OWNER/NAME` of a repository with a commit, in which nothing else happens")
	tokenFile := flags.String("token-file", "", "a `FILE` with the token")
	flags.StringVar(&o.APIURL, "api-url", "https://api.github.com", "the base `URL` of the REST API; of the stand-in http://ADDR/api/v3")
	flags.StringVar(&o.Runner, "runner", "", "the `DIR` of an unpacked actions/runner; without it the newest one is downloaded")
	flags.StringVar(&o.OldRunner, "old-runner", "", "the `DIR` of one that GitHub would update")
	flags.StringVar(&o.RefusedRunner, "refused-runner", "", "the `DIR` of one that GitHub refuses")
	flags.StringVar(&o.WorkDir, "work-dir", "", "the `DIR` for runners and jobs; on the file system of the runner it needs no space")
	flags.BoolVar(&o.Quick, "quick", false, "leave out what takes ten minutes")
	flags.BoolVar(&o.Slow, "slow", false, "add what takes an hour")
	flags.DurationVar(&o.Times.Poll, "poll", 0, "the `TIME` between two looks at GitHub (default 1s)")
	flags.DurationVar(&o.Times.Quiet, "quiet-time", 0, "the `TIME` for which a job must go without a runner (default 1m)")
	flags.DurationVar(&o.Times.Idle, "idle-time", 0, "the `TIME` for which an idle just-in-time runner is watched (default 10m)")
	only := flags.String("only", "", "`NAMES` of checks, separated by commas: "+strings.Join(firstcontact.Checks(), ", "))
	output := flags.String("output", "text", "text or json")
	version := flags.Bool("version", false, "print version, commit and Go version, and nothing else")
	if err := flags.Parse(args); err != nil {
		return findings.ExitFailed, err
	}
	if *version {
		_, err := fmt.Fprintln(out, telemetry.VersionLine("first-contact"))
		return findings.ExitCode(nil, err)
	}
	if flags.NArg() > 0 || o.Repository == "" || *tokenFile == "" || *output != "text" && *output != "json" {
		return findings.ExitFailed, errors.New("usage: first-contact --repository OWNER/NAME --token-file FILE [--output text|json]; --help lists the rest")
	}
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	token, err := readToken(*tokenFile, progress)
	if err != nil {
		return findings.ExitFailed, fmt.Errorf("--token-file: %w", err)
	}
	o.Token, o.Progress = token, progress
	report, err := firstcontact.Run(ctx, o)
	switch {
	case *output == "json" && len(report.Findings) > 0:
		err = errors.Join(err, findings.JSON(out, report))
	case report.RunnerVersion != "": // else no check could be made, and the error says why
		err = errors.Join(err, report.Text(out))
	}
	return findings.ExitCode(report.Findings, err)
}

// readToken reads the file with the token, and warns where other users can read it too.
func readToken(path string, warnings io.Writer) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(f)
	if err != nil {
		return "", err
	}
	token := string(bytes.TrimSpace(text))
	switch {
	case token == "":
		return "", fmt.Errorf("%s holds no token", path)
	case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", fmt.Errorf("%s must hold the token alone, on one line without spaces", path)
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o044 != 0 {
		fmt.Fprintf(warnings, "warning: others can read the token: chmod 600 %s\n", path)
	}
	return token, nil
}
