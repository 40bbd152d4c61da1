package main

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
)

// TestQuotasOfFamilies: the quotas that are read are those of the families that the pools name.
func TestQuotasOfFamilies(t *testing.T) {
	t.Parallel()
	for types, want := range map[string][]string{
		"":                  {"L-1216C47A", "L-34B43A08"},
		"c* m6i.large":      {"L-1216C47A", "L-34B43A08"},
		"*":                 {"L-1216C47A", "L-34B43A08"},
		"im4gn.*":           {"L-1216C47A", "L-34B43A08"},
		"g5.*":              {"L-DB2E81BA", "L-3819A6DF"},
		"gr6.4xlarge vt1.*": {"L-DB2E81BA", "L-3819A6DF"},
		"g6.* c6i.*":        {"L-1216C47A", "L-DB2E81BA", "L-34B43A08", "L-3819A6DF"},
		"p4d.*":             {"L-417A185B", "L-7212CCBC"},
		"p5.*":              {"L-417A185B", "L-C4BD4855"},
		"p*":                {"L-417A185B", "L-C4BD4855", "L-7212CCBC"},
		"inf2.*":            {"L-1945791B", "L-B5D1601B"},
		"trn1.*":            {"L-2C3B7624", "L-6B0D517C"},
		"dl1.*":             {"L-6E869C2A", "L-85EED4F7"},
		"f2.*":              {"L-74FC7D96", "L-88CF9481"},
		"x2gd.*":            {"L-7295265B", "L-E3A00192"},
	} {
		c := &config.Config{
			Pools:           map[string]config.Pool{"build": {InstanceTypes: strings.Fields(types), Maximum: new(4)}},
			ResourceClasses: map[string]config.ResourceClass{"xlarge": {CPU: 4, MemoryMiB: 8192}},
		}
		got := checkQuotas(t.Context(), c, &accountProbe{quota: func(context.Context, string) (float64, error) { return 0, nil }})
		var said []string
		for _, q := range got {
			said = append(said, q.Code)
			if q.Result != resultSmall || q.Needed != 16 {
				t.Errorf("%s: quota %s is %s, needed %d", types, q.Code, q.Result, q.Needed)
			}
		}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Errorf("%s (-want +got):\n%s", types, diff)
		}
	}
}
