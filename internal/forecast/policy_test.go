package forecast_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/forecast"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestExamplesArePolicies: a whole configuration is one, for AWS too, and so are pools alone. Nothing that they name is read.
func TestExamplesArePolicies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"controld.yaml", "controld-aws.yaml", "job-pool.yaml", "history/warm.yaml", "history/kept.yaml"} {
		if p := loadPolicy(t, filepath.Join("../../examples", name)); len(p.Pools) == 0 || p.Pools["default"].Name != "default" {
			t.Errorf("%s: %d pools", name, len(p.Pools))
		}
	}
}

// TestWhatAPolicySays of its job pools, prices and architectures.
func TestWhatAPolicySays(t *testing.T) {
	t.Parallel()
	p, err := forecast.ParsePolicy("it", []byte(`
pools:
  default: {resource_classes: [xlarge], usage_classes: [spot]}
  small: {jobs: {labels: [small], maximum: 3, minimum: 1, repositories: ["acme/*"], usage_class: spot}}
  few: {maximum: 2, jobs: {labels: [few], maximum: 5, repositories: ["acme/*"]}}
cost:
  prices: [{instance_type: "*", usage_class: spot, dollars_per_hour: 0.25}]
`))
	if err != nil {
		t.Fatal(err)
	}
	small, few, other := p.Pools["small"], p.Pools["few"], p.Pools["default"]
	if *small.Maximum != 3 || *few.Maximum != 2 || other.Maximum != nil || small.Warm == nil || small.Warm.Policy.MinimumIdle != 1 || few.Warm != nil {
		t.Errorf("small %+v, few %+v, default %+v", small.Maximum, few.Maximum, other.Maximum)
	}
	if other.Spec.ResourceClass != "xlarge" || other.Spec.UsageClass != lifecycle.UsageSpot || small.Spec.UsageClass != lifecycle.UsageSpot {
		t.Errorf("default asks for %+v, small for %+v", other.Spec, small.Spec)
	}
	if p.DollarsAnHour("small") != 0.25 || p.DollarsAnHour("few") == 0.25 || strings.Join(p.Archs, " ") != "x86_64" {
		t.Errorf("$%g, $%g, %v", p.DollarsAnHour("small"), p.DollarsAnHour("few"), p.Archs)
	}
	if p := loadPolicy(t, "../../examples/controld-aws.yaml"); len(p.Archs) == 0 || p.Prices.Region == "" {
		t.Errorf("on AWS: %v in %q", p.Archs, p.Prices.Region)
	}
}

// TestWrongPolicies: what is wrong has its place, as for controld itself.
func TestWrongPolicies(t *testing.T) {
	t.Parallel()
	var wrong *strictyaml.Error
	for text, want := range map[string]string{
		"pools: {default: {warm: {minimum_idle: -1}}}": "it:1:26: pools.default.warm.minimum_idle",
		"pool: {}": "it:1:1: pool: is not known",
		"pools: [": "it:",
	} {
		if _, err := forecast.ParsePolicy("it", []byte(text)); !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := forecast.LoadPolicy(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
