package firstaccount_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/remuda-ci/remuda/internal/firstaccount"
)

// TestPlacesExist checks that what an assumption says relies on it is there.
func TestPlacesExist(t *testing.T) {
	seen := map[string]bool{}
	for _, list := range firstaccount.Assumptions() {
		for _, a := range list {
			if seen[a.Name] {
				t.Errorf("there are two assumptions %s", a.Name)
			}
			seen[a.Name] = true
			for _, place := range strings.Split(a.ReliedOn, "; ") {
				path, _, _ := strings.Cut(place, ":")
				path, _, _ = strings.Cut(path, "#")
				if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
					t.Errorf("%s: %v", a.Name, err)
				}
			}
		}
	}
}

// TestPage checks that docs/first-account.md has every check and every assumption.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/first-account.md")
	if err != nil {
		t.Fatal(err)
	}
	for check, list := range firstaccount.Assumptions() {
		if !bytes.Contains(page, []byte("| `"+check+"` |")) {
			t.Errorf("the page has no check %s", check)
		}
		for _, a := range list {
			if !bytes.Contains(page, []byte("`"+a.Name+"`")) {
				t.Errorf("the page has no assumption %s", a.Name)
			}
		}
	}
}

// TestOptionsAreChecked has what is wrong found before a call is made.
func TestOptionsAreChecked(t *testing.T) {
	o := firstaccount.Options{AWS: sdk.Config{Region: "us-east-1"}, Only: []string{"polcy"}}
	if _, err := firstaccount.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), `no check "polcy"; there are tables, queues, policy`) {
		t.Error(err)
	}
}
