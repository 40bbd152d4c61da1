// Package internal_test keeps the rooms of the house apart: see the architecture page.
package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/testrun"
)

const module = "github.com/remuda-ci/remuda/"

// anything, as what a room may import: every room but the mains.
var anything = []string{"*"}

// with is a list of rooms and one more.
func with(rooms []string, more string) []string { return slices.Concat(rooms, []string{more}) }

// room is a directory with all packages below it, and the arrows that leave it.
type room struct {
	dir string
	// imports are the rooms that its code may import beside itself. Its tests may import any but the mains.
	imports []string
	// why is the error of a test run after another arrow was added.
	why string
}

const (
	whyAdapter  = "an adapter knows the words and no use-case: what both sides of a port need lives in lifecycle"
	whyStandIn  = "the stand-in must agree with GitHub, not with our code"
	whyUseCases = "the use-cases are reached by their ports and know neither adapters nor the wire"
)

// What the rooms of the fleet stand on: the words, what acts on one host, and what a use-case
// beside others may know.
var (
	words       = []string{"internal/policy", "internal/lifecycle"}
	underHosts  = append([]string{"internal/fleet/ports", "internal/fleet/op"}, words...)
	besideHosts = append([]string{"internal/fleet/hosts", "internal/fleet/quota"}, underHosts...)
)

// rooms are all of them: a package in none of them fails the test. The longest matching directory counts.
var rooms = []room{
	{"controld", anything, ""},
	{"agentd", anything, ""},
	{"remuda", anything, ""},
	{"internal/demo", anything, ""},
	{"internal/bench", anything, ""},
	{"internal/e2e", anything, ""},
	{"systemd", nil, "it is units, scripts and packages, and tests of them"},
	{"deploy", nil, "it is templates, and tests of them"},
	{"action", nil, "it is JavaScript, and a test that runs its tests"},
	{"packer", nil, "it is templates and scripts of images, and tests of them"},
	{"internal/firstcontact", []string{"internal/findings", "internal/agent", "internal/github", "internal/tree", "internal/lifecycle", "internal/telemetry"},
		"it asks GitHub itself, and reads the answers as the product does"},
	{"internal/firstaccount", []string{
		"internal/findings", "internal/permissions", "internal/compute", "internal/store", "internal/queue", "internal/lifecycle", "internal/aws",
		"internal/telemetry",
	}, "it asks AWS itself, by the calls of the product"},
	{"internal/local", []string{"proto"}, "it runs the daemons as a user would and speaks to them by their contract"},

	{"proto", nil, "generated code stands alone"},
	{"internal/lifecycle", nil, "it is the ground floor and pure"},
	{"internal/policy", []string{"internal/lifecycle"}, "it is pure and stands on lifecycle alone"},
	{"internal/fleet", slices.Concat([]string{
		"internal/fleet/gather", "internal/fleet/provision", "internal/fleet/sweeps", "internal/fleet/scaledown", "internal/fleet/warm",
		"internal/fleet/jobs", "internal/fleet/explain", "internal/fleet/costs", "internal/fleet/checks", "internal/services", "internal/services/workqueue", "internal/services/model",
	}, besideHosts), whyUseCases},
	{"internal/fleet/ports", words, "the ports are in the words of lifecycle, so that rooms and adapters can share them"},
	{"internal/fleet/op", words, "all use-cases are operations, so it knows none of them"},
	{"internal/fleet/hosts", with(underHosts, "internal/together"), "it acts on one host; other rooms learn of changes by its After hooks"},
	{"internal/fleet/quota", with(underHosts, "internal/fleet/hosts"), "it counts hosts and launches, and does not know what they are for"},
	{"internal/fleet/gather", []string{"internal/fleet/ports", "internal/fleet/op", "internal/lifecycle"},
		"it makes one call of many launches, and does not know what they are for"},
	{"internal/fleet/provision", with(besideHosts, "internal/fleet/gather"), "it serves a request of a caller, a job or a sweep alike, so it knows none of them"},
	{"internal/fleet/sweeps", besideHosts, "it resumes requests and provides for jobs through functions handed to it, so it knows none of their rooms"},
	{"internal/fleet/scaledown", with(besideHosts, "internal/recent"), "it ends hosts and never asks for new ones"},
	{"internal/fleet/warm", with(besideHosts, "internal/fleet/provision"), "it launches as provision does, for no run, and knows nothing of jobs"},
	{"internal/fleet/jobs", with(besideHosts, "internal/fleet/provision"), "a job is served by a request, so it stands on provision alone"},
	{"internal/fleet/costs", slices.Concat(underHosts, []string{"internal/fleet/hosts", "internal/recent"}), "it reads what hosts were used for; nothing happens to them"},
	{"internal/fleet/checks", []string{"internal/fleet/op", "internal/policy", "internal/lifecycle"}, "it writes what others have found out"},
	{"internal/fleet/explain", with(with(besideHosts, "internal/fleet/scaledown"), "internal/recent"), "it reads and explains; nothing happens in it"},
	{"internal/agent", []string{"internal/policy", "internal/lifecycle"},
		"it meets the fleet in the store alone and is reached by its ports"},

	{"internal/store", []string{"internal/store/sqlite/db", "internal/lifecycle", "internal/services/model", "internal/aws"}, whyAdapter},
	{"internal/store/storetest", []string{"internal/store", "internal/lifecycle", "internal/services/model", "internal/testrun/racepass"}, whyAdapter},
	{"internal/store/sqlite/db", []string{"internal/together", "internal/lifecycle"},
		"it is the file, and knows nothing of what is kept there"},
	{"internal/queue", []string{"internal/lifecycle", "internal/aws"}, whyAdapter},
	{"internal/compute", []string{"internal/lifecycle", "internal/aws", "internal/proc", "internal/tree"}, whyAdapter},
	{"internal/services", []string{
		"internal/services/workqueue", "internal/services/model", "internal/fleet/op", "internal/policy", "internal/lifecycle",
	}, "its use-cases are operations; the fleet above it hands in its hold and its lease"},
	{"internal/services/workqueue", []string{"internal/services/model", "internal/fleet/op", "internal/lifecycle"},
		"a job queue does not know how its service is scaled"},
	{"internal/services/ecs", []string{"internal/services/model", "internal/lifecycle", "internal/aws"}, whyAdapter},
	{"internal/services/postgrest", []string{"internal/services/model", "internal/lifecycle"}, whyAdapter},
	{"internal/services/model", []string{"internal/lifecycle"},
		"it holds the rows of services for use-cases, adapters and stores alike, and is pure"},
	{"internal/github", []string{"internal/lifecycle"}, whyAdapter},
	{"internal/github/webhook", []string{"internal/lifecycle"}, "it reads what GitHub delivers, and is pure"},
	{"internal/host", []string{"internal/agent", "internal/lifecycle", "internal/proc", "internal/tree"},
		"it fills the agent's ports, in the agent's and lifecycle's types"},
	{"internal/host/imds", []string{"internal/aws"}, "it says what EC2 says, in words of its own"},
	{"internal/host/power", []string{"internal/aws"}, "it ends a machine of EC2 and knows nothing else of a host"},
	{"internal/aws", []string{"internal/lifecycle"}, "the AWS adapters share it, so it knows none of them"},
	{"internal/permissions", []string{"internal/store", "internal/queue", "internal/compute", "internal/services/ecs", "internal/host/power", "internal/aws"},
		"it gathers what the adapters say of themselves"},
	{"internal/proc", nil, "it reads /proc and knows nothing of hosts"},
	{"internal/tree", nil, "it deletes and copies directories and does not know whose"},
	{"internal/safefile", nil, "it reads and writes files and does not know of what"},
	{"internal/ca", []string{"internal/safefile"}, "it issues certificates"},
	{"internal/findings", []string{"internal/retry"}, "it says what was found, whatever was looked at"},
	{"internal/retry", nil, "it waits between tries and does not know of what"},
	{"internal/together", nil, "it holds what is given at once, and does not know what"},
	{"internal/logkey", nil, "it is a list of names"},
	{"internal/recent", nil, "it keeps answers and does not know to what"},
	{"internal/secretfile", []string{"internal/lifecycle"}, "it reads secrets, whatever they are for"},
	{"internal/cli", []string{"proto", "internal/lifecycle", "internal/safefile", "internal/telemetry"},
		"it speaks to controld by the contract, so it knows nothing of what is behind it"},
	{"internal/page", []string{"proto", "internal/cli", "internal/lifecycle", "internal/recent"},
		"it shows in a browser what remuda shows, and reads by the contract as remuda does"},
	{"internal/plan", []string{"internal/policy", "internal/lifecycle"}, "it reads a fleet from a file and prints what policy decides about it"},
	{"internal/snapshot", []string{"proto", "internal/server", "internal/fleet", "internal/store", "internal/plan", "internal/policy", "internal/lifecycle"},
		"it answers from a file by the code of the server over a store in memory, and reaches no network, cloud or GitHub"},
	{"internal/history", nil, "it reads jobs that ran, and does not know what is made of them"},
	{"internal/history/fromgithub", []string{"internal/history"}, "it reads what GitHub says of jobs that ran, and nothing else"},
	{"internal/history/published", []string{"internal/history"}, "it reads what other people publish of jobs that ran, and nothing else"},
	{"internal/replay", []string{
		"internal/history", "internal/fleet", "internal/fleet/ports", "internal/store", "internal/queue", "internal/compute", "internal/policy", "internal/lifecycle",
	}, "it runs the use-cases on a world of its own, in one process and without a network"},
	{"internal/forecast", []string{"internal/history", "internal/replay", "internal/config", "internal/settings", "internal/fleet", "internal/policy", "internal/lifecycle"},
		"it plays recorded jobs and prints what came of them; nothing is called"},
	{"internal/cost", []string{"internal/aws"}, "it turns counts of calls into dollars, from any caller"},
	{"internal/awstest", []string{"internal/aws", "internal/compute", "internal/lifecycle"},
		"it is the emulators' side: it sets up the SDK as the product does, and knows EC2's catalogue and the words for it"},
	{"internal/testrun", []string{"internal/testrun/racepass"}, "it runs tests, whatever they are about"},
	{"internal/testrun/racepass", nil, "it knows how tests are run, and nothing else"},
	{"internal/mutation", nil, "it changes code and runs tests, whatever they are about"},
	{"internal/gittest", nil, "it runs git, whatever for"},
	{"internal/site", []string{"internal/retry"}, "it checks pages, and does not know what they say"},
	{"internal/githubsim", nil, whyStandIn},
	{"internal/githubsim/openapitest", nil, "it holds calls against GitHub's own description and against nothing of ours"},

	{"internal/server", []string{"proto", "internal/fleet", "internal/services", "internal/services/workqueue", "internal/services/model", "internal/policy", "internal/lifecycle", "internal/telemetry", "internal/secretfile"},
		"it maps the contract to the use-cases; adapters and configuration are handed to it by main"},
	{"internal/web", []string{"internal/fleet", "internal/github/webhook", "internal/policy", "internal/lifecycle", "internal/telemetry", "internal/secretfile"},
		"it maps HTTP to the use-cases; adapters and configuration are handed to it by main"},
	{"internal/config", []string{"internal/policy", "internal/lifecycle", "internal/services/model"}, "it says what was configured and builds nothing"},
	{"internal/inputs", []string{"internal/config", "internal/github", "internal/server", "internal/web", "internal/services/postgrest", "internal/secretfile", "internal/lifecycle"},
		"it reads what a configuration names, by the code of those that use it; main wires them"},
	{"internal/settings", []string{"internal/config", "internal/fleet", "internal/policy", "internal/lifecycle"},
		"it says a configuration in the words of the fleet, and makes neither"},
	{"internal/config/inventory", []string{"internal/config", "internal/policy"}, "it lists the keys and does not know what they do"},
	{"internal/telemetry", []string{"internal/lifecycle"}, "everything may be measured, so it knows nothing but the words"},
	{"internal/dev", []string{"internal/config", "internal/githubsim"},
		"it lays out what a daemon on one machine needs; the daemon itself is wired by main"},
	{"internal/instrument", []string{"internal/fleet", "internal/github", "internal/services", "internal/services/model", "internal/lifecycle", "internal/telemetry"},
		"it measures by the ports, whatever adapter is behind them"},
	{"internal/tracing", []string{"internal/fleet", "internal/aws", "internal/lifecycle"}, "it follows operations by what they say of themselves, and calls by their transport"},
	{"internal/tracing/collectortest", nil, "it runs a collector, whatever is sent to it"},
	{"internal/sim/engine", []string{"internal/fleet/op", "internal/agent", "internal/lifecycle"},
		"it steps actors and draws lots, whatever the world is"},
	{"internal/sim/world", []string{
		"internal/sim/engine", "internal/fleet/ports", "internal/agent", "internal/policy", "internal/lifecycle",
		"internal/services/model", "internal/store", "internal/queue", "internal/compute",
	}, "it is what a fleet acts on: what happens in it goes to observers, so it knows neither the rules nor the lives"},
	{"internal/sim/rules", []string{
		"internal/sim/world", "internal/sim/engine", "internal/fleet", "internal/agent", "internal/policy", "internal/lifecycle", "internal/services/model",
	}, "it observes a world and does nothing in it"},
	{"internal/sim", []string{
		"internal/sim/rules", "internal/sim/world", "internal/sim/engine",
		"internal/fleet", "internal/fleet/op", "internal/agent", "internal/policy", "internal/lifecycle",
		"internal/services", "internal/services/workqueue", "internal/services/model",
		"internal/store", "internal/queue", "internal/compute",
	}, "it runs the use-cases and the agent on worlds of its own, in one process and without a network"},
}

// common are the rooms that every other may import that imports any of ours and is not pure.
var common = []string{"internal/logkey", "internal/retry", "internal/safefile"}

// unreachable are the rooms that no other may import, not even for a test.
var unreachable = []string{"controld", "agentd", "remuda", "internal/demo", "internal/bench", "internal/mutation", "internal/site"}

// testOnly are the rooms that only tests import.
var testOnly = []string{"internal/awstest", "internal/config/inventory", "internal/githubsim/openapitest", "internal/gittest", "internal/testrun"}

// pure are the rooms whose code does no I/O and draws no lots.
var pure = []string{"internal/lifecycle", "internal/policy", "internal/services/model", "internal/github/webhook"}

// impure are the packages of the standard library that a pure room has no use for.
var impure = []string{"context", "crypto/rand", "database/sql", "io/fs", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec", "syscall"}

// goPackage is what go list says about a package.
type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func TestArrows(t *testing.T) {
	testrun.Fresh() // go list reads the whole tree
	for _, tags := range []string{"", "soak,testhost,upgrade,months"} {
		for _, wrong := range wrongArrows(list(t, tags)) {
			t.Error(wrong)
		}
	}
}

// list are the packages of the module as they are built with the tags.
func list(t *testing.T, tags string) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags="+tags, "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var pkgs []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return pkgs
		case err != nil:
			t.Fatalf("decode go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

// wrongArrows are sentences about the imports that the table does not allow.
func wrongArrows(pkgs []goPackage) []string {
	var wrong []string
	for _, p := range pkgs {
		from, ok := roomOf(p.ImportPath)
		if !ok {
			if p.ImportPath != module+"internal" {
				wrong = append(wrong, p.ImportPath+" is in no room: give it one in internal/arrows_test.go")
			}
			continue
		}
		for _, path := range p.Imports {
			if why := from.refuses(path); why != "" {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: %s", p.ImportPath, path, why))
			}
		}
		for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
			if to, ok := roomOf(path); ok && to.dir != from.dir && slices.Contains(unreachable, to.dir) {
				wrong = append(wrong, fmt.Sprintf("a test of %s imports %s: nothing imports %s", p.ImportPath, path, to.dir))
			}
		}
	}
	return wrong
}

// roomOf is the room that the package is in; false for packages that are not ours.
func roomOf(path string) (room, bool) {
	rel, ours := strings.CutPrefix(path, module)
	var best room
	for _, r := range rooms {
		if ours && strings.HasPrefix(rel+"/", r.dir+"/") && len(r.dir) > len(best.dir) {
			best = r
		}
	}
	return best, best.dir != ""
}

// refuses says why the room's code must not import the package; "" when it may.
func (r room) refuses(path string) string {
	if slices.Contains(pure, r.dir) && slices.Contains(impure, path) {
		return r.dir + " is pure: no I/O, no chance"
	}
	to, ours := roomOf(path)
	switch {
	case !ours || to.dir == r.dir:
		return ""
	case slices.Contains(unreachable, to.dir):
		return "nothing imports " + to.dir
	case slices.Contains(testOnly, to.dir):
		return "only tests import " + to.dir
	case slices.Contains(common, to.dir) && len(r.imports) > 0 && !slices.Contains(pure, r.dir):
		return ""
	case slices.Equal(r.imports, anything) || slices.Contains(r.imports, to.dir):
		return ""
	}
	return r.why
}

func TestWrongArrowsAreFound(t *testing.T) {
	imports := func(from string, to ...string) goPackage {
		p := goPackage{ImportPath: module + from}
		for _, path := range to {
			p.Imports = append(p.Imports, module+path)
		}
		return p
	}
	tests := map[string]struct {
		pkg  goPackage
		want []string
	}{
		"within a room":     {imports("internal/store/sqlite", "internal/store/conformance", "internal/lifecycle"), nil},
		"a main":            {imports("controld", "internal/server", "internal/store/sqlite", "internal/config"), nil},
		"the standard":      {goPackage{ImportPath: module + "internal/fleet", Imports: []string{"os"}}, nil},
		"a name's neighbor": {imports("internal/githubsim", "internal/githubsim/expr"), nil},
		"what is common":    {imports("internal/github", "internal/retry"), nil},
		"what is common, in a pure room": {imports("internal/policy", "internal/retry"),
			[]string{"internal/policy imports internal/retry: it is pure and stands on lifecycle alone"}},
		"what is common, in the stand-in": {imports("internal/githubsim", "internal/retry"),
			[]string{"internal/githubsim imports internal/retry: " + whyStandIn}},
		"an adapter in a test": {goPackage{
			ImportPath: module + "internal/fleet", XTestImports: []string{module + "internal/store/memory"},
		}, nil},

		"the ground floor": {imports("internal/lifecycle", "internal/policy"),
			[]string{"internal/lifecycle imports internal/policy: it is the ground floor and pure"}},
		"policy and fleet": {imports("internal/policy", "internal/fleet"),
			[]string{"internal/policy imports internal/fleet: it is pure and stands on lifecycle alone"}},
		"I/O": {goPackage{ImportPath: module + "internal/lifecycle", Imports: []string{"net"}},
			[]string{"internal/lifecycle imports net: internal/lifecycle is pure: no I/O, no chance"}},
		"fleet and others": {imports("internal/fleet", "internal/store/sqlite", "internal/github", "proto/remuda/v1"),
			[]string{
				"internal/fleet imports internal/store/sqlite: " + whyUseCases,
				"internal/fleet imports internal/github: " + whyUseCases,
				"internal/fleet imports proto/remuda/v1: " + whyUseCases,
			}},
		"agent and fleet": {imports("internal/agent", "internal/fleet"),
			[]string{"internal/agent imports internal/fleet: it meets the fleet in the store alone and is reached by its ports"}},
		"adapter and fleet": {imports("internal/queue/memory", "internal/fleet"),
			[]string{"internal/queue/memory imports internal/fleet: " + whyAdapter}},
		"web and the contract": {imports("internal/web", "proto/remuda/v1"),
			[]string{"internal/web imports proto/remuda/v1: it maps HTTP to the use-cases; adapters and configuration are handed to it by main"}},
		"a main's package": {imports("internal/demo", "controld/flags"),
			[]string{"internal/demo imports controld/flags: nothing imports controld"}},
		"a main's package in a test": {goPackage{
			ImportPath: module + "internal/fleet", TestImports: []string{module + "controld/flags"},
		}, []string{"a test of internal/fleet imports controld/flags: nothing imports controld"}},
		"an emulator in a test": {goPackage{
			ImportPath: module + "internal/store/dynamo", XTestImports: []string{module + "internal/awstest"},
		}, nil},
		"an emulator in a main": {imports("controld", "internal/awstest"),
			[]string{"controld imports internal/awstest: only tests import internal/awstest"}},
		"no room": {imports("internal/attic"), []string{"internal/attic is in no room: give it one in internal/arrows_test.go"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, wrong := range wrongArrows([]goPackage{test.pkg}) {
				got = append(got, strings.ReplaceAll(wrong, module, ""))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("wrong arrows (-want +got):\n%s", diff)
			}
		})
	}
}
