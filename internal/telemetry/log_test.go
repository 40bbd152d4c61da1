package telemetry_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/telemetry"
)

func TestTextLog(t *testing.T) {
	var out bytes.Buffer
	log := telemetry.NewLogger("controld", "warn", telemetry.LogText, &out)
	log.Info("too quiet")
	log.Named("sweep").Warn("host is silent", "instance", "i-1", "for", "60s")
	want := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \[WARN\]  controld\.sweep: host is silent: instance=i-1 for=60s\n$`)
	if !want.MatchString(out.String()) {
		t.Errorf("got %q", out.String())
	}
}

func TestJSONLog(t *testing.T) {
	var out bytes.Buffer
	telemetry.NewLogger("agentd", "debug", telemetry.LogJSON, &out).Debug("registered", "run", "42")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	if line["@module"] != "agentd" || line["@level"] != "debug" || line["run"] != "42" || !strings.HasSuffix(line["@timestamp"].(string), "Z") {
		t.Errorf("got %v", line)
	}
}
