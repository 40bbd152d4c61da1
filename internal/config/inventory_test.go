package config_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/config/inventory"
)

// inFile fills in the keys that a user chooses, and the first item of a list.
var inFile = strings.NewReplacer("<name>", "large", "<pattern>", "c6", "<variable>", "X", "<arch>", "x86_64", "<key>", "team", "[]", "[0]")

// document is a file that sets the key.
func document(l inventory.Key, value string) string {
	path := inFile.Replace(l.Path)
	text := value
	keys := strings.Split(path, ".")
	for i := len(keys) - 1; i >= 0; i-- {
		key, item := strings.CutSuffix(keys[i], "[0]")
		if item {
			text = "[" + text + "]"
		}
		if text = key + ": " + text; i > 0 {
			text = "{" + text + "}"
		}
	}
	switch text += "\n"; {
	case strings.HasPrefix(path, "pools.large.ec2."):
		text += "aws: {instance_profile: x}\n"
	case strings.HasPrefix(path, "github."):
		return text
	}
	return token + text
}

func problemPath(l inventory.Key) string {
	return inFile.Replace(l.Path)
}

// A header names the part of the keys before the dots, and each row the rest of one.
var (
	header = regexp.MustCompile("^\\| `([a-z0-9_.<>[\\]]+)\\.…` \\|")
	row    = regexp.MustCompile("^\\| `([a-z0-9_.<>[\\]]+)` \\| (.*?) \\| (.*?) \\| (.*?) \\|\n$")
)

func TestTheDocumentationHasEveryKey(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, prefix := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		if m := header.FindStringSubmatch(line); m != nil {
			prefix = m[1] + "."
		} else if m := row.FindStringSubmatch(line); m != nil {
			if rows[prefix+m[1]] != nil {
				t.Errorf("%s has two rows", prefix+m[1])
			}
			rows[prefix+m[1]] = m[2:]
		}
	}
	own := regexp.MustCompile(`<(name|pattern|variable|arch|key)>|\[\]|^grpc\.tls|^webhooks|^page|^tracing\.(endpoint|ca_file|headers_file)|^callers\.audience|^limits\.hosts_per|^github\.(token|ca_file|runner_group|check_runs_after)|^aws\.(region|instance_profile|ec2\.(subnets|security_groups|kms_key_id|cpu_baseline))$`)
	for _, l := range inventory.Keys() {
		columns, ok := rows[l.Path]
		delete(rows, l.Path)
		switch {
		case !ok:
			t.Errorf("%s has no row", l.Path)
		case slices.Contains(columns, ""):
			t.Errorf("%s has an empty column", l.Path)
		case !own.MatchString(l.Path) && !sameValue(strings.Trim(columns[0], "`"), l.Default()):
			t.Errorf("%s: the default is said to be %s, and is %s", l.Path, columns[0], l.Default())
		}
	}
	for path := range rows {
		t.Errorf("%s is documented, and no key", path)
	}
}

// sameValue compares texts, and durations by their length.
func sameValue(a, b string) bool {
	da, errA := time.ParseDuration(a)
	db, errB := time.ParseDuration(b)
	return a == b || (errA == nil && errB == nil && da == db)
}

// examples are the whole files: of a fleet on this machine and of one in AWS.
var examples = []string{"../../examples/controld.yaml", "../../examples/controld-aws.yaml"}

func TestTheExamplesAreFine(t *testing.T) {
	for i, pools := range []int{5, 2} {
		c, err := config.Load(examples[i])
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Pools) != pools {
			t.Errorf("%s: got %+v", examples[i], c)
		}
	}
}

func TestTheExamplesHaveEveryKey(t *testing.T) {
	var text []byte
	for _, example := range examples {
		one, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, one...)
	}
	placeholder := regexp.MustCompile(`\.<(pattern|variable|arch|key)>$`)
	for _, l := range inventory.Keys() {
		keys := strings.Split(placeholder.ReplaceAllString(l.Path, ""), ".")
		if key := keys[len(keys)-1]; !regexp.MustCompile(`(?m)^[ #-]*` + key + `:`).Match(text) {
			t.Errorf("%s is missing", l.Path)
		}
	}
}

// Where an example says "default" it must be one, and each default must say so.
func TestTheExamplesKnowTheDefaults(t *testing.T) {
	checked := 0
	for _, example := range examples {
		checked += checkDefaults(t, example)
	}
	if checked < 28 {
		t.Errorf("only %d defaults were found", checked)
	}
}

func checkDefaults(t *testing.T, example string) (checked int) {
	t.Helper()
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{}
	for _, l := range inventory.Keys() {
		defaults[strings.NewReplacer("resource_classes.<name>", "resource_classes.large", "<name>", "default").Replace(l.Path)] = l.Default()
	}
	var visit func(path string, n *yaml.Node)
	visit = func(path string, n *yaml.Node) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			at := strings.TrimPrefix(path+"."+key.Value, ".")
			if value.Kind == yaml.MappingNode {
				visit(at, value)
				continue
			}
			want, known := defaults[at]
			marked := strings.HasPrefix(value.LineComment, "# default")
			same := known && value.Kind == yaml.ScalarNode && sameValue(value.Value, want)
			if marked != same {
				t.Errorf("%s:%d: %s: %s, the default is %q, marked as default: %t", example, key.Line, at, value.Value, want, marked)
			}
			if marked {
				checked++
			}
		}
	}
	visit("", root.Content[0])
	return checked
}

// TestMigrationNamesKeys: what the page for those who come from another tool names in its right columns is a key, or begins some.
func TestMigrationNamesKeys(t *testing.T) {
	page, err := os.ReadFile("../../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	keys, found := inventory.Keys(), 0
	named := regexp.MustCompile("`((?:aws|github|webhooks|page|pools|resource_classes|limits|timeouts|sweeps|scale_down|services|callers|cost)[.[][^`:]*)(?:: [a-z]+)?`")
	for _, m := range named.FindAllSubmatch(page, -1) {
		found++
		path := string(m[1])
		is := func(k inventory.Key) bool {
			return k.Path == path || strings.HasPrefix(k.Path, path+".") || strings.HasPrefix(k.Path, strings.TrimSuffix(path, "[]")+"[].")
		}
		if !slices.ContainsFunc(keys, is) {
			t.Errorf("the page names %s, which is no key", path)
		}
	}
	if found < 50 {
		t.Errorf("the page names %d keys", found)
	}
}
