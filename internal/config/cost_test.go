package config_test

import (
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/config"
)

func TestCost(t *testing.T) {
	c := parse(t, "cost: {spot_percent: 50, prices: [{instance_type: m7g.*, usage_class: spot, region: eu-west-1, dollars_per_hour: 0.03}]}")
	list := c.Cost.List("eu-west-1")
	if dollars, rough, ok := list.Of("m7g.large", "spot"); dollars != 0.03 || rough || !ok {
		t.Errorf("$%g (rough %v, known %v)", dollars, rough, ok)
	}
	if dollars, _, _ := list.Of("m6i.large", "spot"); dollars != 0.048 {
		t.Errorf("half of the built-in price is $%g", dollars)
	}
	for text, want := range map[string]string{
		"cost: {call_prices: [{unit: ec2-request}]}":                                                 `"ec2-request" is not allowed; did you mean sqs-request?`,
		"cost: {call_prices: [{dollars_per_million: 1}]}":                                            "cost.call_prices[0].unit: is missing; write one of",
		"cost: {call_prices: [{unit: sqs-request, dollars_per_million: -1}]}":                        "cost.call_prices[0].dollars_per_million: is -1; write a number from 0 to 1000",
		"cost: {call_prices: [{unit: sqs-request, region: europe}]}":                                 "cost.call_prices[0].region",
		"cost: {call_prices: [" + strings.Repeat("{unit: sqs-request},", 2001) + "]}":                "has 2001 rows; write at most 2000",
		"cost: {spot_percent: 101}":                                                                  "cost.spot_percent",
		"cost: {prices: [{instance_type: 'm7g.[', dollars_per_hour: 1}]}":                            `"m7g.[" is no type and no pattern; write one such as m7g.large or m7g.*`,
		"cost: {prices: [{instance_type: x, dollars_per_hour: .nan}]}":                               `".nan" is not a number; write one`,
		"cost: {prices: [{instance_type: x, region: europe, dollars_per_hour: 1}]}":                  "cost.prices[0].region",
		"cost: {prices: [{instance_type: x, dollars_per_hour: cheap}]}":                              "is text; write a number",
		"cost: {prices: [{instance_type: m7g.large, dollars_per_hour: -1}]}":                         "cost.prices[0].dollars_per_hour: is -1; write a number from 0 to 1000",
		"cost: {prices: [{instance_type: m7g.large, usage_class: reserved}]}":                        "known here: on-demand, spot",
		"cost: {prices: [" + strings.Repeat("{instance_type: x, dollars_per_hour: 1},", 2001) + "]}": "has 2001 rows; write at most 2000",
	} {
		if _, err := config.Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}
