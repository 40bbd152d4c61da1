package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/awstest/pinned"
)

const alerts = "prometheus/alerts.yaml"

// alert is one rule.
type alert struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations map[string]string
}

func readAlerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []alert }
	}
	decode(t, alerts, &file)
	var all []alert
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no alert", alerts)
	}
	return all
}

func decode(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, path)), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAlerts: Prometheus takes the rules. By its own engine, each alert fires on its fault and on no other, and none on a good day.
func TestAlerts(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", alerts)
	promtool(t, "test", "rules", "prometheus/alerts_test.yaml")
}

var alertTools = sync.OnceValues(pinned.Tools{Script: "scripts/alert-tools"}.Install)

// promtool runs a command of promtool that has to go well.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	tools, err := alertTools()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(tools.Dir, "promtool"), args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestEveryAlertIsTested: the file of tests has a fault for each alert.
func TestEveryAlertIsTested(t *testing.T) {
	tests := read(t, "prometheus/alerts_test.yaml")
	for _, a := range readAlerts(t) {
		if !strings.Contains(tests, `alertname="`+a.Alert+`"`) {
			t.Errorf("no test has %s fire", a.Alert)
		}
	}
}

// TestAlertsKnowTheMetrics: the runbook of an alert is the part of the page of metrics on its metric, or on one of them.
func TestAlertsKnowTheMetrics(t *testing.T) {
	const runbook = "https://github.com/remuda-ci/remuda/blob/main/docs/metrics.md#"
	page := readMetrics(t)
	for _, a := range readAlerts(t) {
		page.check(a.Alert, a.Expr)
		part, found := strings.CutPrefix(a.Annotations["runbook_url"], runbook)
		if !found || !slices.Contains(metricsOf(a.Expr), part) {
			t.Errorf("%s has the runbook %q", a.Alert, a.Annotations["runbook_url"])
		}
		if s := a.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s has the severity %q", a.Alert, s)
		}
	}
}
