package price_test

import (
	"math"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

func TestPrices(t *testing.T) {
	t.Parallel()
	own := []price.Price{
		{InstanceType: "m7g.*", Region: "eu-west-1", Dollars: 7},
		{InstanceType: "m7g.large", UsageClass: lifecycle.UsageSpot, Dollars: 0.03},
		{InstanceType: "local", Dollars: 0},
	}
	none := math.NaN()
	for _, tt := range []struct {
		kind, usage, region string
		want                float64
		rough               bool
	}{
		{"m7g.large", "on-demand", "us-east-1", 0.0816, false},
		{"m7g.large", "spot", "us-east-1", 0.03, false},
		{"m7g.large", "spot", "eu-west-1", 7, false},
		{"m7g.4xlarge", "on-demand", "us-east-1", 0.6528, false},
		{"m7g.medium", "on-demand", "us-east-1", 0.0408, false},
		{"m7g.xlarge", "spot", "us-east-1", 0.0816 * 2 * 0.5, true},
		{"m6i.large", "on-demand", "eu-west-1", 0.096, true},
		{"t3.micro", "on-demand", "us-east-1", 0.0104, false},
		{"t4g.2xlarge", "on-demand", "us-east-1", 0.2688, false},
		{"local", "on-demand", "", 0, false},
		{"m7g.nano", "on-demand", "us-east-1", none, false}, {"m7g.metal", "on-demand", "us-east-1", none, false},
		{"p5.48xlarge", "on-demand", "us-east-1", none, false}, {"m7g.1xlarge", "on-demand", "us-east-1", none, false},
		{"m7g.64xlarge", "on-demand", "us-east-1", 0.0816 * 128, false}, {"m7g.65xlarge", "on-demand", "us-east-1", none, false},
		{"m7g.4", "on-demand", "us-east-1", none, false}, {"m7g.x", "on-demand", "us-east-1", none, false}, {"", "on-demand", "us-east-1", none, false}, {"m7g", "spot", "us-east-1", none, true},
	} {
		got, rough, ok := price.List{Own: own, SpotShare: 0.5, Region: tt.region}.Of(tt.kind, tt.usage)
		if ok == math.IsNaN(tt.want) || ok && math.Abs(got-tt.want) > 1e-9 || rough != tt.rough {
			t.Errorf("%+v: %g, rough %v, known %v", tt, got, rough, ok)
		}
	}
}
