package jitconfig_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/github/jitconfig"
)

func encode(t *testing.T, files map[string][]byte) string {
	t.Helper()
	raw, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func decode(t *testing.T, config string) (files map[string][]byte, settings map[string]any) {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &files); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(files[".runner"], &settings); err != nil {
		t.Fatal(err)
	}
	return files, settings
}

func TestDisableUpdate(t *testing.T) {
	for name, runner := range map[string]string{
		"without it":      `{"AgentId":"12","Ephemeral":"True","Nested":{"n":9007199254740993}}`,
		"with a mark":     "\xef\xbb\xbf" + `{"AgentId":"12","Ephemeral":"True","Nested":{"n":9007199254740993}}`,
		"enabled":         `{"AgentId":"12","Ephemeral":"True","DisableUpdate":"False","Nested":{"n":9007199254740993}}`,
		"in another case": `{"AgentId":"12","Ephemeral":"True","disableUpdate":false,"Nested":{"n":9007199254740993}}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := jitconfig.DisableUpdate(encode(t, map[string][]byte{
				".runner": []byte(runner), ".credentials": []byte("{}"), ".credentials_rsaparams": {0, 255, '<'}}))
			if err != nil {
				t.Fatal(err)
			}
			files, settings := decode(t, got)
			want := map[string]any{"AgentId": "12", "Ephemeral": "True", "DisableUpdate": "True", "Nested": map[string]any{"n": 9007199254740993.0}}
			if d := cmp.Diff(want, settings); d != "" {
				t.Error(d)
			}
			if !strings.Contains(string(files[".runner"]), "9007199254740993") {
				t.Errorf("a number has changed: %s", files[".runner"])
			}
			delete(files, ".runner")
			if d := cmp.Diff(map[string][]byte{".credentials": []byte("{}"), ".credentials_rsaparams": {0, 255, '<'}}, files); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDisableUpdateOfWhatIsNone(t *testing.T) {
	for name, config := range map[string]string{
		"empty":            "",
		"not base64":       "s3cret!",
		"not JSON":         base64.StdEncoding.EncodeToString([]byte("s3cret")),
		"a list":           base64.StdEncoding.EncodeToString([]byte(`["s3cret"]`)),
		"null":             base64.StdEncoding.EncodeToString([]byte(`null`)),
		"no settings":      encode(t, map[string][]byte{".credentials": []byte("s3cret")}),
		"settings not one": encode(t, map[string][]byte{".runner": []byte(`"s3cret"`)}),
		"settings null":    encode(t, map[string][]byte{".runner": []byte(`null`)}),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := jitconfig.DisableUpdate(config)
			if err == nil || got != "" || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// What comes from outside never panics, and what is changed can be changed again to the same.
func FuzzDisableUpdate(f *testing.F) {
	f.Add(`{".runner":"e30="}`)
	f.Add(`{".runner":"bnVsbA=="}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := jitconfig.DisableUpdate(base64.StdEncoding.EncodeToString([]byte(text)))
		if err != nil {
			return
		}
		if again, err := jitconfig.DisableUpdate(got); err != nil || again != got {
			t.Errorf("again: %v\n%s\n%s", err, got, again)
		}
	})
}
