package firstcontact

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/github/jitconfig"
)

var updateCheck = check{
	name: "update",
	does: "decodes a just-in-time configuration, and starts an older runner with and without DisableUpdate in it",
	assumptions: []findings.Assumption{
		{
			Name:     "jit-decodes",
			Text:     "A just-in-time configuration is base64 of a JSON object of files in base64, and .runner among them is JSON without DisableUpdate.",
			ReliedOn: "internal/github/jitconfig: controld changes it",
		},
		{
			Name:     "update-without",
			Text:     "An older just-in-time runner without DisableUpdate updates itself, takes no job and ends with exit code 4.",
			ReliedOn: "internal/agent/decide_serve.go: why DisableUpdate is needed",
		},
		{
			Name:     "update-disabled",
			Text:     "An older just-in-time runner with DisableUpdate in .runner takes its job, and ends with exit code 0.",
			ReliedOn: "internal/github/runners.go: job pools with an image that is not the newest",
		},
	},
	run: checkUpdate,
}

func checkUpdate(ctx context.Context, s *session) error {
	label := s.name("label")
	j, err := s.gh.justInTime(ctx, s.name("jit"), label)
	if err != nil {
		return err
	}
	changed, err := jitconfig.DisableUpdate(j.Config)
	if err != nil {
		s.Decide("jit-decodes", false, "%v", err)
		return nil
	}
	names := settingsOf(j.Config)
	s.Decide("jit-decodes", !slices.ContainsFunc(names, isDisableUpdate) && slices.ContainsFunc(settingsOf(changed), isDisableUpdate),
		".runner has %s", strings.Join(names, ", "))
	if s.OldRunner == "" {
		s.Leave("update-without", "no --old-runner was given")
		s.Leave("update-disabled", "no --old-runner was given")
		return s.gh.deleteRunner(ctx, j.Runner.ID)
	}
	if err := checkUpdates(ctx, s, j.Config); err != nil {
		return err
	}
	if err := unless(s.gh.deleteRunner(ctx, j.Runner.ID), 404); err != nil {
		return err
	}
	if j, err = s.gh.justInTime(ctx, s.name("jit"), label); err != nil {
		return err
	}
	if changed, err = jitconfig.DisableUpdate(j.Config); err != nil {
		return err
	}
	return checkNoUpdate(ctx, s, changed, label)
}

// settingsOf are the names in .runner of a configuration, sorted. None of the values is shown: some are addresses, and others are secret.
func settingsOf(config string) []string {
	raw, _ := base64.StdEncoding.DecodeString(config) // jitconfig has read it
	var files map[string][]byte
	var settings map[string]any
	if json.Unmarshal(raw, &files) != nil || json.Unmarshal(bytes.TrimPrefix(files[".runner"], bom), &settings) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(settings))
}

func isDisableUpdate(name string) bool { return strings.EqualFold(name, "DisableUpdate") }

// startJIT starts an older runner with a just-in-time configuration.
func startJIT(ctx context.Context, s *session, config string) (*listener, error) {
	r, err := s.newRunner(s.OldRunner)
	if err != nil {
		return nil, err
	}
	s.Say("runner %s is of version %s", r.name, versionOf(s.OldRunner))
	return r.listen(ctx, inputPrefix+"JITCONFIG="+config)
}

// checkUpdates watches a runner that may update itself.
func checkUpdates(ctx context.Context, s *session, config string) error {
	l, err := startJIT(ctx, s, config)
	if err != nil {
		return err
	}
	return l.decideEnd(ctx, "update-without", func() bool { return l.code() == 4 })
}

// checkNoUpdate has a runner that must not update itself take a job.
func checkNoUpdate(ctx context.Context, s *session, config, label string) error {
	runs, err := s.startJob(ctx, label, step{script: "true"})
	if err != nil {
		return err
	}
	l, err := startJIT(ctx, s, config)
	if err != nil {
		return err
	}
	took, ended, err := l.awaitEnd(ctx, s.Times.Patience)
	if err != nil {
		return err
	}
	if !ended {
		s.Decide("update-disabled", false, "it listens still, %s later, without a job", findings.Seconds(took))
		return runs.cancel(ctx)
	}
	if l.code() != 0 {
		s.Decide("update-disabled", false, "it ended with exit code %d and said: %s", l.code(), lastLines(l.output()))
		return runs.cancel(ctx)
	}
	j, _, err := runs.completed(ctx)
	if err == nil {
		s.Decide("update-disabled", j.Conclusion == "success", "the job ended as %s, and the listener with exit code %d", j.Conclusion, l.code())
	}
	return err
}
