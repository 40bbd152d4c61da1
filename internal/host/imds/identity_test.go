package imds_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest/imdstest"
	"github.com/remuda-ci/remuda/internal/host/imds"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestIdentityOfAMachine(t *testing.T) {
	whole := imds.Identity{
		InstanceID: "i-0123456789abcdef0", Region: "eu-west-1", Zone: "eu-west-1b", Type: "c6i.large", Arch: "x86_64",
		Lifecycle: "spot", Pool: "build", Role: "AROAEXAMPLE",
	}
	untagged := whole
	untagged.Pool, untagged.Role = "", ""
	tests := map[string]struct {
		change func(*imdstest.Machine)
		want   imds.Identity
	}{
		"with our tags":         {func(*imdstest.Machine) {}, whole},
		"without tags":          {func(m *imdstest.Machine) { m.Tags = map[string]string{} }, untagged},
		"tags not in metadata":  {func(m *imdstest.Machine) { m.Tags = nil }, untagged},
		"with tags of no value": {func(m *imdstest.Machine) { m.Tags = map[string]string{"remuda:pool": ""} }, untagged},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := machine()
			tt.change(&m)
			got, err := imds.Identify(t.Context(), client(t, imdstest.Start(t, m), nil))
			check(t, err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("identity (-want +got):\n%s", diff)
			}
		})
	}
}

// Without a token nothing is asked, whatever the service says to that.
func TestFirstVersionIsNeverTried(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusInternalServerError, 0} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			s := imdstest.Start(t, machine())
			s.Fail(imdstest.Fault{Path: "/latest/api/token", Status: status})
			// A busy machine may not get as far as a call at first.
			for limit := 300 * time.Millisecond; len(s.Calls()) == 0 && limit < time.Minute; limit *= 2 {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				if id, err := imds.Identify(ctx, client(t, s, nil)); !errors.Is(err, lifecycle.ErrUnavailable) {
					t.Errorf("identity %+v, error %v, want %v", id, err, lifecycle.ErrUnavailable)
				}
				cancel()
			}
			for _, call := range s.Calls() {
				if call.Method != http.MethodPut {
					t.Errorf("asked without a token: %+v", call)
				}
			}
			if len(s.Calls()) == 0 {
				t.Error("no token was asked for either, so nothing was proven")
			}
		})
	}
}

func TestHiccupsOfTheServiceArePassedOver(t *testing.T) {
	s := imdstest.Start(t, machine())
	s.Fail(imdstest.Fault{Status: http.StatusInternalServerError, Times: 1})
	s.Fail(imdstest.Fault{Path: "/latest/meta-data/tags", Status: http.StatusServiceUnavailable, Times: 1})
	c := client(t, s, nil)
	if _, err := imds.Identify(t.Context(), c); err != nil {
		t.Error(err)
	}
	s.Revoke() // its token, which the client still holds
	if _, err := imds.Identify(t.Context(), c); err != nil {
		t.Errorf("after the token was revoked: %v", err)
	}
}

func TestNoIdentity(t *testing.T) {
	tests := map[string]func(*imdstest.Machine, *imdstest.Service){
		"no document":           func(m *imdstest.Machine, _ *imdstest.Service) { m.InstanceID = "" },
		"a document of nowhere": func(m *imdstest.Machine, _ *imdstest.Service) { m.Region = "" },
		"no tags for now": func(_ *imdstest.Machine, s *imdstest.Service) {
			s.Fail(imdstest.Fault{Path: "/latest/meta-data/tags", Status: http.StatusForbidden})
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s := imdstest.Start(t, machine())
			m := machine()
			change(&m, s)
			s.Change(func(now *imdstest.Machine) { *now = m })
			if id, err := imds.Identify(t.Context(), client(t, s, nil)); !errors.Is(err, lifecycle.ErrUnavailable) {
				t.Errorf("identity %+v, error %v, want %v", id, err, lifecycle.ErrUnavailable)
			}
		})
	}
}

// Questions to the metadata service are apart from calls that are paid for.
func TestQuestionsAreCountedApart(t *testing.T) {
	var calls aws.Calls
	_, err := imds.Identify(t.Context(), client(t, imdstest.Start(t, machine()), &calls))
	check(t, err)
	want := map[aws.Call]int{
		{Service: "imds", Operation: "getToken"}: 1, {Service: "imds", Operation: "GetInstanceIdentityDocument"}: 1,
		{Service: "imds", Operation: "GetMetadata"}: 3,
	}
	if diff := cmp.Diff(want, calls.Counts()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
