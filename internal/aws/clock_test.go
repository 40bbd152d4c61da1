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
