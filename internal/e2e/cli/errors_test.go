package cli_test

import (
	"os"
	"strings"
	"testing"
)

// TestExitCodes: what goes wrong has the exit code of docs/cli.md, and an error that says what to do.
func TestExitCodes(t *testing.T) {
	s := newStage(t)
	tests := map[string]struct {
		code int
		part string
		args []string
	}{
		"an unknown command":              {2, "unknown command", []string{"pss"}},
		"a command that is close":         {2, "Did you mean this?\n\tpools", []string{"pool"}},
		"an unknown subcommand":           {2, "unknown command", []string{"context", "uses"}},
		"an unknown flag":                 {2, "`remuda ps --help` says more", []string{"ps", "--al"}},
		"an unknown format":               {2, "write one of", []string{"ps", "-o", "xml"}},
		"an unknown state":                {2, "is not a state", []string{"ps", "--state", "asleep"}},
		"an interval apart from its flag": {2, "write --watch=5s", []string{"ps", "--watch", "5s"}},
		"an interval after a run":         {2, "write --watch=5s", []string{"why", "acme/shop/41", "-w", "5s"}},
		"a short interval":                {2, "100ms or more", []string{"ps", "--watch=1ms"}},
		"too many arguments":              {2, "arg", []string{"why", "a", "b", "c"}},
		"no run":                          {2, "owner/name", []string{"release", "41"}},
		"a URL of something else":         {2, "is not the URL of a run", []string{"why", "https://github.com/acme/shop/pull/1"}},
		"a value that controld takes not": {2, "instance_count", []string{"provision", "acme/shop/41", "--count", "201"}},
		"no hosts":                        {2, "--count 0: write 1 or more", []string{"provision", "acme/shop/41", "--count", "0"}},
		"an unknown class":                {2, "resource_class", []string{"provision", "acme/shop/41", "--class", "tiny"}},
		"nothing to hold":                 {2, "--all", []string{"hold"}},
		"a hold that is too long":         {2, "24h", []string{"hold", "i-1", "--for", "25h"}},
		"a history of all":                {2, "--run, --host or --since", []string{"events", "--follow=false"}},
		"nothing to drain":                {2, "--pool, or --all", []string{"drain"}},
		"a drain of two kinds":            {2, "--pool, or --all", []string{"drain", "i-1", "--all"}},
		"an unknown pool to pause":        {3, "pause pool none: there is no pool \"none\"; configured: [default]\n`remuda pools` lists the pools.", []string{"pause", "none"}},
		"an unknown pool to resume":       {3, "resume pool none: there is no pool \"none\"", []string{"resume", "none"}},
		"an unknown cache":                {3, "drop cache go: pool default has no cache \"go\"", []string{"cache", "rm", "go", "--repository", "acme/shop"}},
		"a cache of an unknown pool":      {3, "drop cache go: there is no pool \"none\"", []string{"cache", "rm", "go", "--repository", "acme/shop", "--pool", "none"}},
		"whose cache is not said":         {2, "--repository OWNER/NAME", []string{"cache", "rm", "go"}},
		"no cache":                        {2, "accepts 1 arg", []string{"cache", "rm"}},
		"no pool to pause":                {2, "accepts 1 arg", []string{"pause"}},
		"a drain without confirmation":    {2, "--yes", []string{"drain", "--all"}},
		"an unknown pool to drain":        {3, "`remuda pools` lists the pools.", []string{"drain", "--pool", "none", "--yes"}},
		"an end without a reason":         {2, "--reason", []string{"terminate", "i-1", "--yes"}},
		"an end without confirmation":     {2, "--yes", []string{"terminate", "i-1", "--reason", "x"}},
		"a snapshot that is not there":    {1, "no such file", []string{"plan", "--snapshot", "/no/such"}},
		"an unknown host":                 {3, "`remuda ps --all`", []string{"why", "i-0123456789abcdef0"}},
		"an unknown run":                  {3, "no request for hosts", []string{"why", "acme/shop/99"}},
		"an unknown run alone":            {3, "owner/name/99", []string{"why", "99"}},
		"an unknown host to hold":         {3, "hold host i-0123456789abcdef0: instance i-0123456789abcdef0: not found", []string{"hold", "i-0123456789abcdef0"}},
		"an unknown context":              {3, "context list", []string{"ps", "--context", "prod"}},
		"no controld":                     {5, "Is `controld dev` running", []string{"ps", "--address", "127.0.0.1:1"}},
		"no such machine":                 {5, "controld.invalid", []string{"ps", "--address", "controld.invalid"}},
		"the port of webhooks":            {5, "does not speak gRPC", []string{"ps", "--address", s.HTTPAddr}},
		"no controld to log in to":        {5, "connection refused", []string{"login", "x", "--address", "127.0.0.1:1"}},
		"too few hosts in time":           {6, "`remuda why acme/shop 98`", []string{"provision", "acme/shop/98", "--within", "1ms"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.T = t
			s.fails(test.code, test.part, test.args...)
		})
	}
}

// TestConflict: what the state of a host or request does not allow has a code of its own.
func TestConflict(t *testing.T) {
	s := newStage(t)
	s.must("provision", "acme/shop/41", "--request-id", "r1")
	s.fails(7, "r1", "provision", "acme/shop/41", "--request-id", "r1", "--max-runtime", "1h")
	s.must("hold", "--all", "--reason", "a look")
	host := s.hosts()[0].ID
	s.fails(7, "`remuda hold --all --off`", "terminate", host, "--reason", "x", "--yes")
	if got := s.must("hold", "--all", "--off"); got != "No hold of the fleet is in force.\n" {
		t.Errorf("got %q", got)
	}
}

// TestDrain: a drained host serves its run to the end and then leaves; one without a run leaves at once.
func TestDrain(t *testing.T) {
	s := newStage(t)
	s.must("provision", "acme/shop/41", "--count", "2")
	first := s.hosts()[0].ID
	if got := s.must("drain", first, "--reason", "slow", "-o", "json"); got != "{\n  \"drainedCount\": 1,\n  \"retiringCount\": 0\n}\n" {
		t.Errorf("got %s", got)
	}
	if got := s.hosts("--state", "retiring"); len(got) != 1 || got[0].ID != first || got[0].Run != "41" {
		t.Errorf("retiring: %v", got)
	}
	if got := s.must("drain", "--pool", "default", "--yes"); !strings.HasPrefix(got, "1 drained, 1 was leaving already;") {
		t.Errorf("got %s", got)
	}
	s.must("release", "acme/shop/41", "--wait")
	for len(s.hosts()) > 0 { // they end as soon as they are released
		if s.ctx.Err() != nil {
			t.Fatal("drained hosts have not ended")
		}
	}
}

// TestReleaseOfAHeldHost: a release that waits says which hold it waits for, and ends with it.
func TestReleaseOfAHeldHost(t *testing.T) {
	s := newStage(t)
	s.must("provision", "acme/shop/41", "--count", "2")
	held := s.hosts()[1].ID
	s.must("drain", held)
	s.must("hold", held, "--reason", "a look")
	r := s.begin("release", "acme/shop/41", "--wait")
	r.until(r.stderr, "waiting: "+held+" is held until ")
	s.must("hold", held, "--off")
	r.until(r.stderr, "2 taken from the run, 1 pooled")
	if code := s.code(r.cmd.Wait()); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestContextsFile: a file that others can read is not read, and contexts come and go.
func TestContextsFile(t *testing.T) {
	s := newStage(t)
	s.must("login", "second", "--address", s.GRPCAddr)
	if got := s.must("context", "list"); !strings.Contains(got, "*        second  "+s.GRPCAddr) || !strings.Contains(got, "-        dev     ") {
		t.Errorf("contexts:\n%s", got)
	}
	s.must("context", "use", "dev")
	s.must("context", "delete", "second")
	s.must("ps", "--context", "dev")
	s.fails(3, "no context second", "context", "use", "second")
	s.fails(5, "connection refused", "login", "dev", "--address", "127.0.0.1:1")
	s.must("ps") // what was kept is as before
	if err := os.Chmod(s.config, 0o644); err != nil {
		t.Fatal(err)
	}
	s.fails(1, "chmod 600 "+s.config, "ps")
}
