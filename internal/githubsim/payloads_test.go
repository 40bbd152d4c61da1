package githubsim_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kindOf is the JSON type of a decoded value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// shape notes the JSON types of every place below v. The places of a list's elements are one.
func shape(v any, place string, into map[string][]string) {
	if kind := kindOf(v); !slices.Contains(into[place], kind) {
		into[place] = append(into[place], kind)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			shape(below, place+"/"+key, into)
		}
	case []any:
		for _, below := range v {
			shape(below, place+"/*", into)
		}
	}
}

// exampleShapes are those of GitHub's examples of the event.
func exampleShapes(t *testing.T, event string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("testdata/webhooks/" + event + ".*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples of %s: %v", event, err)
	}
	shapes := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		shape(v, "", shapes)
	}
	return shapes
}

// documented are places that the description has and no example: those of workflow_run are not of an app's hook, and older.
var documented = []string{"/installation", "/installation/id", "/installation/node_id", "/workflow_run/referenced_workflows"}

// strangers are the places of a payload that no example has, or has with other types only. A null is at home everywhere where
// something else is: whether it may be one is for the description to say.
func strangers(payload any, examples map[string][]string) []string {
	ours := map[string][]string{}
	shape(payload, "", ours)
	var out []string
	for _, place := range slices.Sorted(maps.Keys(ours)) {
		for _, kind := range ours[place] {
			there := examples[place]
			if slices.Contains(documented, place) {
				continue
			}
			if len(there) == 0 || kind != "null" && !slices.Contains(there, kind) && !slices.Equal(there, []string{"null"}) {
				out = append(out, fmt.Sprintf("%s is a %s, in the examples %v", place, kind, there))
			}
		}
	}
	return out
}

func TestDeliveriesLookLikeGitHubsExamples(t *testing.T) {
	s := start(t)
	r := newReceiver(t, "hush")
	s.registerApp(12, "acme")
	s.deliverTo(r, "hush", 0, 0)
	s.online("a", "box")
	s.startRun(oneJob)
	s.startRunFrom(map[string]any{"event": "pull_request", "head_branch": "topic"})
	r.await(t, 2*len(ofOneJob))
	for i, body := range r.bodies {
		event, _, _ := strings.Cut(r.got[i], " ")
		for _, strange := range strangers(body, exampleShapes(t, event)) {
			t.Errorf("%s: %s", r.got[i], strange)
		}
	}
}

func TestStrangersAreFound(t *testing.T) {
	examples := map[string][]string{"": {"object"}, "/a": {"string"}, "/b": {"null"}, "/c": {"array"}}
	got := strangers(map[string]any{"a": 1.0, "b": "text", "c": nil, "d": true}, examples)
	want := []string{"/a is a number, in the examples [string]", "/d is a boolean, in the examples []"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
