package token_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/token"
)

func TestRoundTrip(t *testing.T) {
	for _, key := range [][]string{{}, {""}, {"a/b", "ü\"\\", "\n"}} {
		got, err := token.Parse("index", token.New("index", key...), len(key))
		if err != nil {
			t.Errorf("%q: %v", key, err)
		}
		if diff := cmp.Diff(key, got); diff != "" {
			t.Errorf("key (-want +got):\n%s", diff)
		}
	}
	if key, err := token.Parse("index", "", 2); key != nil || err != nil {
		t.Errorf("no token: got %q and error %v, want none of either", key, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"*", "W10", "bnVsbA", token.New("index"), token.New("index", "a"), token.New("other", "a", "b")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := token.Parse("index", text, 2)
		switch {
		case text == "":
		case err != nil && !errors.Is(err, lifecycle.ErrPageToken):
			t.Errorf("got error %v, want %v", err, lifecycle.ErrPageToken)
		case err == nil && len(key) != 2:
			t.Errorf("got key %q, want two parts", key)
		}
	})
}
