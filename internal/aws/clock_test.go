package aws_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/remuda-ci/remuda/internal/aws"
)

// The last answer counts, a refusal as well as a success, and the one before a call is tried again.
func TestTheClockIsThatOfTheLastAnswer(t *testing.T) {
	ahead := time.Duration(0)
	stand := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "none"}`))
	}))
	defer stand.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": stand.URL, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	clock := &aws.Clock{}
	config, err := aws.Load(t.Context(), aws.Options{Region: "eu-west-1", Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	if got := clock.Offset(); got != 0 {
		t.Errorf("before the first answer: %s", got)
	}
	client := sqs.NewFromConfig(config)
	for _, ahead = range []time.Duration{0, 6 * time.Hour, -time.Minute, 0} {
		_, _ = client.ListQueues(t.Context(), nil)
		if got := clock.Offset(); (got - ahead).Abs() > 2*time.Second { // the header has whole seconds
			t.Errorf("%s ahead: got %s", ahead, got)
		}
	}
}

// A clock that is set after the last answer is wrong from then on, and time that passes makes none wrong.
func TestAClockThatIsSet(t *testing.T) {
	given := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for passed, set := range map[time.Duration]time.Duration{0: 0, 10 * time.Second: 6 * time.Hour, time.Hour: 0, time.Minute: -time.Hour} {
		if got := aws.OffsetOf(given, passed, given.Add(passed).Add(set)); got != -set {
			t.Errorf("%s after the answer the clock is set by %s, and is said to be %s off", passed, set, got)
		}
	}
}

// An answer to a call that took long may be from its beginning: a right clock is not taken for a wrong one by it.
func TestALongCallShowsNoTime(t *testing.T) {
	clock := &aws.Clock{}
	came := time.Now()
	clock.Note(came.Add(-time.Minute), came, time.Minute)
	if got := clock.Offset(); got != 0 {
		t.Errorf("after a call of a minute: %s", got)
	}
	clock.Note(came.Add(-time.Hour), came, time.Second)
	if got := clock.Offset(); got.Round(time.Minute) != -time.Hour {
		t.Errorf("after a call of a second: %s", got)
	}
}
