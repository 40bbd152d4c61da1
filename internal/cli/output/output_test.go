package output_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/cli/output"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

func TestMessage(t *testing.T) {
	event := &remudav1.Event{
		EventTime: timestamppb.New(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)), InstanceId: "i-1", RunId: "41", Assignment: 7,
		Action: remudav1.Action_ACTION_CLAIM, Reason: `taken "at once" <now>: yes`,
	}
	tests := map[string]struct {
		format output.Format
		want   string
	}{
		"json": {output.JSON, `{
  "eventTime": "2026-01-01T12:00:00Z",
  "action": "ACTION_CLAIM",
  "instanceId": "i-1",
  "repository": "",
  "runId": "41",
  "requestId": "",
  "assignment": "7",
  "fromState": "STATE_UNSPECIFIED",
  "toState": "STATE_UNSPECIFIED",
  "reason": "taken \"at once\" <now>: yes",
  "reasonCode": "",
  "pool": "",
  "jobId": "0",
  "jobName": ""
}
`},
		// A number that JSON has as a string stays one.
		"yaml": {output.YAML, `eventTime: "2026-01-01T12:00:00Z"
action: ACTION_CLAIM
instanceId: i-1
repository: ""
runId: "41"
requestId: ""
assignment: "7"
fromState: STATE_UNSPECIFIED
toState: STATE_UNSPECIFIED
reason: 'taken "at once" <now>: yes'
reasonCode: ""
pool: ""
jobId: "0"
jobName: ""
`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for range 20 { // protojson varies its spaces
				var b strings.Builder
				if err := output.Message(&b, test.format, event); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, b.String()); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestEmptyLists(t *testing.T) {
	for format, want := range map[output.Format]string{output.JSON: "{\n  \"instances\": [],\n  \"nextPageToken\": \"\"\n}\n", output.YAML: "instances: []\nnextPageToken: \"\"\n"} {
		var b strings.Builder
		if err := output.Message(&b, format, &remudav1.ListInstancesResponse{}); err != nil || b.String() != want {
			t.Errorf("%s: got %q, %v; want %q", format, b.String(), err, want)
		}
	}
}

// A stream is one line for each message, or one document.
func TestLine(t *testing.T) {
	var b strings.Builder
	for _, format := range []output.Format{output.JSON, output.YAML} {
		if err := output.Line(&b, format, &remudav1.StateCount{Count: 2}); err != nil {
			t.Fatal(err)
		}
	}
	want := "{\"state\":\"STATE_UNSPECIFIED\",\"count\":2}\n---\nstate: STATE_UNSPECIFIED\ncount: 2\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFormat(t *testing.T) {
	var f output.Format
	for _, name := range output.Formats {
		if err := f.Set(name); err != nil || f.String() != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.Set("xml"); err == nil {
		t.Error("xml was taken")
	}
}
