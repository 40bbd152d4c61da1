package notices_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle/notice"
	"github.com/remuda-ci/remuda/internal/queue/notices"
)

// event is one of EventBridge's, as EC2's user guide shows them.
func event(detailType, detail string) string {
	return `{"version":"0","id":"12345678-1234-1234-1234-123456789012","detail-type":"` + detailType + `","source":"aws.ec2",` +
		`"account":"123456789012","time":"2026-03-02T12:00:00Z","region":"us-east-2",` +
		`"resources":["arn:aws:ec2:us-east-2a:instance/i-1234567890abcdef0"],"detail":` + detail + `}`
}

const (
	warning     = "EC2 Spot Instance Interruption Warning"
	rebalance   = "EC2 Instance Rebalance Recommendation"
	stateChange = "EC2 Instance State-change Notification"
)

func TestParse(t *testing.T) {
	of := func(kind notice.Kind) notice.Notice {
		return notice.Notice{InstanceID: "i-1234567890abcdef0", Kind: kind, At: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
	}
	terminate := event(warning, `{"instance-id":"i-1234567890abcdef0","instance-action":"terminate"}`)
	for name, test := range map[string]struct {
		body    string
		want    notice.Notice
		ignored bool
		says    string
	}{
		"interruption":      {body: terminate, want: of(notice.Interruption)},
		"to stop":           {body: strings.Replace(terminate, `"terminate"`, `"stop"`, 1), want: of(notice.Interruption)},
		"to hibernate":      {body: strings.Replace(terminate, `"terminate"`, `"hibernate"`, 1), want: of(notice.Interruption)},
		"rebalance":         {body: event(rebalance, `{"instance-id":"i-1234567890abcdef0"}`), want: of(notice.Rebalance)},
		"shutting down":     {body: event(stateChange, `{"instance-id":"i-1234567890abcdef0","state":"shutting-down"}`), want: of(notice.Ending)},
		"terminated":        {body: event(stateChange, `{"instance-id":"i-1234567890abcdef0","state":"terminated"}`), want: of(notice.Ending)},
		"running":           {body: event(stateChange, `{"instance-id":"i-1234567890abcdef0","state":"running"}`), ignored: true},
		"of another kind":   {body: event("EBS Volume Notification", `{}`), ignored: true},
		"of another source": {body: strings.Replace(terminate, "aws.ec2", "aws.s3", 1), ignored: true},
		"an odd state":      {body: event(stateChange, `{"instance-id":"i-1234567890abcdef0","state":"asleep"}`), says: `state "asleep" is not one of EC2's`},
		"an odd action":     {body: strings.Replace(terminate, `"terminate"`, `"reboot"`, 1), says: `instance-action "reboot" is not one of EC2's`},
		"no instance":       {body: event(rebalance, `{}`), says: `instance-id "" is not an instance's`},
		"an odd instance":   {body: event(rebalance, `{"instance-id":"i-1; rm"}`), says: "is not an instance's"},
		"no time":           {body: strings.Replace(terminate, `"time"`, `"tme"`, 1), says: "time is missing"},
		"an odd time":       {body: strings.Replace(terminate, "2026-03-02T12", "yesterday", 1), says: "parse notice"},
		"another version":   {body: strings.Replace(terminate, `"version":"0"`, `"version":"1"`, 1), says: `version is "1"`},
		"no event":          {body: `{"id":"i-1"}`, says: `version is ""`},
		"no JSON":           {body: `hello`, says: "parse notice"},
		"two documents":     {body: terminate + terminate, says: "parse notice"},
		"nothing":           {body: ``, says: "parse notice"},
		"too long":          {body: strings.Repeat(" ", 16<<10) + terminate, says: "at most 16384 allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := notices.Parse([]byte(test.body))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if errors.Is(err, notices.ErrIgnored) != test.ignored || (err != nil) != (test.ignored || test.says != "") {
				t.Errorf("error %v", err)
			}
			if test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("error %v does not say %q", err, test.says)
			}
		})
	}
}

// FuzzParse: what is let through is whole, and no error quotes its input at
// length.
func FuzzParse(f *testing.F) {
	f.Add([]byte(event(warning, `{"instance-id":"i-1234567890abcdef0","instance-action":"terminate"}`)))
	f.Add([]byte(event(rebalance, `{"instance-id":"i-1234567890abcdef0"}`)))
	f.Add([]byte(event(stateChange, `{"instance-id":"i-1234567890abcdef0","state":"stopping"}`)))
	f.Add([]byte(`{"version":"0","source":"aws.ec2","detail-type":"` + warning + `","detail":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := notices.Parse(body)
		whole := strings.HasPrefix(n.InstanceID, "i-") && len(n.InstanceID) <= 19 && n.Kind != "" && !n.At.IsZero()
		if (err == nil) != whole || err != nil && n != (notice.Notice{}) {
			t.Errorf("%+v, %v", n, err)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}
