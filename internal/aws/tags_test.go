package aws_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
)

func TestFleetTags(t *testing.T) {
	t.Parallel()
	owner := map[string]string{"team": "ci", aws.TagFleet: "another"}
	got := aws.FleetTags("remuda", owner)
	if diff := cmp.Diff(map[string]string{"team": "ci", aws.TagFleet: "remuda"}, got); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if owner[aws.TagFleet] != "another" {
		t.Error("the map of the owner was changed")
	}
}

func TestLackingTags(t *testing.T) {
	t.Parallel()
	want := map[string]string{"team": "ci", "empty": "", aws.TagFleet: "remuda"}
	for name, test := range map[string]struct{ found, lacking map[string]string }{
		"none are there":       {nil, want},
		"all are there":        {map[string]string{"team": "ci", "empty": "", aws.TagFleet: "remuda", "other": "x"}, map[string]string{}},
		"one has another case": {map[string]string{"Team": "ci", "empty": "", aws.TagFleet: "remuda"}, map[string]string{"team": "ci"}},
		"one has another value": {
			map[string]string{"team": "web", "empty": "", aws.TagFleet: "remuda"}, map[string]string{"team": "ci"},
		},
		"one has no value and is not there": {map[string]string{"team": "ci", aws.TagFleet: "remuda"}, map[string]string{"empty": ""}},
	} {
		if diff := cmp.Diff(test.lacking, aws.LackingTags(test.found, want)); diff != "" {
			t.Errorf("%s: lacking (-want +got):\n%s", name, diff)
		}
	}
	if got := aws.WhyTagged(want); got != "tags were missing or different: empty, remuda:fleet, team" {
		t.Errorf("why: %s", got)
	}
}
