package config_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/config"
)

// leaf is a key of the configuration that has a value and no keys below it.
type leaf struct {
	path  string // `pools.<name>.reuse`
	value reflect.Value
}

func (l leaf) isDuration() bool { return l.value.Type() == reflect.TypeFor[time.Duration]() }

// text is the value as documented and in the example.
func (l leaf) text() string {
	if l.isDuration() {
		return l.value.Interface().(time.Duration).String()
	}
	if l.value.Kind() == reflect.Slice {
		return "[" + strings.Trim(fmt.Sprint(l.value.Interface()), "[]") + "]"
	}
	return fmt.Sprint(l.value.Interface())
}

// inFile fills in the keys that a user chooses, and the first item of a list.
var inFile = strings.NewReplacer("<name>", "large", "<pattern>", "c6", "<variable>", "X", "<arch>", "x86_64", "<key>", "team", "[]", "[0]")

// yaml is a document that sets the key.
func (l leaf) yaml(value string) string {
	path := inFile.Replace(l.path)
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

func (l leaf) problemPath() string {
	return inFile.Replace(l.path)
}

// leaves lists the keys below a value. An entry of a map, and an item of a list,
// stands for all of them.
func leaves(v reflect.Value) []leaf { return walk(nil, "", v) }

func walk(found []leaf, path string, v reflect.Value) []leaf {
	switch v.Kind() {
	case reflect.Pointer:
		return walk(found, path, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("yaml")
			if name == "" { // no file has it
				continue
			}
			found = walk(found, strings.TrimPrefix(path+"."+name, "."), v.Field(i))
		}
		return found
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			return walk(found, path+"[]", v.Index(0))
		}
	case reflect.Map:
		entry := "<name>"
		switch v.Type().Elem().Kind() {
		case reflect.Int:
			entry = "<pattern>"
		case reflect.String:
			entry = "<variable>"
		}
		switch {
		case strings.HasSuffix(path, ".images"):
			entry = "<arch>"
		case strings.HasSuffix(path, ".tags"):
			entry = "<key>"
		}
		return walk(found, path+"."+entry, v.MapIndex(v.MapKeys()[0]))
	}
	return append(found, leaf{path, v})
}

// withEverything is the defaults, with what they leave out added empty.
func withEverything() *config.Config {
	c := config.Default()
	var none time.Duration
	c.GRPC.TLS = &config.TLS{}
	c.GitHub.Apps = []config.GitHubApp{{}}
	c.Callers.Operators = []config.Operator{{}}
	c.Callers.Repositories = []config.CallerRule{{MaxRuntime: &none}}
	c.Compute.Process.Capacity = map[string]int{"x": 0}
	c.Compute.Process.SpotCapacity = map[string]int{"x": 0}
	c.Compute.Process.Environment = map[string]string{"X": ""}
	ec2 := func() config.EC2 {
		no := false
		return config.EC2{Images: map[string]string{"x": ""}, Tags: map[string]string{"x": ""}, Burstable: &no}
	}
	c.AWS = &config.AWS{EC2: ec2()}
	c.AWS.SetDefaults()
	c.ResourceClasses = map[string]config.ResourceClass{"large": c.ResourceClasses["large"]}
	pool := c.Pools[config.DefaultPool]
	pool.MaxRuntime, pool.IdleTime = &none, &none
	own := ec2()
	pool.EC2 = &own
	c.Webhooks, pool.Jobs = &config.Webhooks{}, &config.Jobs{}
	pool.Warm = &config.Warm{Schedules: []config.WarmPeriod{{}}}
	c.Pools = map[string]config.Pool{config.DefaultPool: pool}
	c.ScaleDown = &config.ScaleDown{Idle: []config.IdlePeriod{{}}}
	c.ScaleDown.SetDefaults()
	c.Services = map[string]config.Service{"x": {Queue: config.ServiceQueue{PostgREST: &config.PostgREST{}}}}
	return c
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
	own := regexp.MustCompile(`<(name|pattern|variable|arch|key)>|\[\]|^grpc\.tls|^webhooks|^callers\.audience|^github\.(token|ca_file|runner_group)|^aws\.(region|instance_profile|ec2\.(subnets|security_groups|kms_key_id))$`)
	for _, l := range leaves(reflect.ValueOf(withEverything())) {
		columns, ok := rows[l.path]
		delete(rows, l.path)
		switch {
		case !ok:
			t.Errorf("%s has no row", l.path)
		case slices.Contains(columns, ""):
			t.Errorf("%s has an empty column", l.path)
		case !own.MatchString(l.path) && !sameValue(strings.Trim(columns[0], "`"), l.text()):
			t.Errorf("%s: the default is said to be %s, and is %s", l.path, columns[0], l.text())
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
	for i, pools := range []int{4, 2} {
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
	for _, l := range leaves(reflect.ValueOf(withEverything())) {
		keys := strings.Split(placeholder.ReplaceAllString(l.path, ""), ".")
		if key := keys[len(keys)-1]; !regexp.MustCompile(`(?m)^[ #-]*` + key + `:`).Match(text) {
			t.Errorf("%s is missing", l.path)
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
	for _, l := range leaves(reflect.ValueOf(withEverything())) {
		defaults[strings.NewReplacer("resource_classes.<name>", "resource_classes.large", "<name>", "default").Replace(l.path)] = l.text()
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
