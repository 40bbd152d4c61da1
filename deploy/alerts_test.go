package deploy_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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
	tool, err := exec.CommandContext(t.Context(), "../scripts/alert-tools").Output()
	if err != nil {
		t.Fatalf("install promtool: %v", err)
	}
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", alerts}, {"test", "rules", "prometheus/alerts_test.yaml"}} {
		if out, err := exec.CommandContext(t.Context(), strings.TrimSpace(string(tool)), args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
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

var (
	metric  = regexp.MustCompile(`remuda_[a-z_]+`)
	matcher = regexp.MustCompile(`([a-z_]+)=~?"([^"]+)"`)
)

// TestAlertsKnowTheMetrics: what an alert asks for is on the page of metrics, which a test of controld compares with what is served, and so are the
// values of its labels. Its runbook is the part of the page on the metric, or on another of the same alert.
func TestAlertsKnowTheMetrics(t *testing.T) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(read(t, "../docs/metrics.md"), "\n### ") {
		name, text, _ := strings.Cut(part, "\n")
		parts[strings.Trim(name, "`")] = text
	}
	const runbook = "https://github.com/remuda-ci/remuda/blob/main/docs/metrics.md#"
	for _, a := range readAlerts(t) {
		var names []string
		for _, name := range metric.FindAllString(a.Expr, -1) {
			names = append(names, strings.TrimSuffix(name, "_bucket"))
		}
		for _, name := range names {
			if parts[name] == "" {
				t.Errorf("%s asks for %s, which is not on the page of metrics", a.Alert, name)
			}
			for _, m := range matcher.FindAllStringSubmatch(a.Expr, -1) {
				for value := range strings.SplitSeq(m[2], "|") {
					if !strings.Contains(parts[name], "`"+m[1]+"`") || !strings.Contains(parts[name], "`"+value+"`") {
						t.Errorf("%s asks for %s=%q, which %s does not have", a.Alert, m[1], value, name)
					}
				}
			}
		}
		page, found := strings.CutPrefix(a.Annotations["runbook_url"], runbook)
		if !found || !slices.Contains(names, page) {
			t.Errorf("%s has the runbook %q", a.Alert, a.Annotations["runbook_url"])
		}
		if s := a.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s has the severity %q", a.Alert, s)
		}
	}
}
