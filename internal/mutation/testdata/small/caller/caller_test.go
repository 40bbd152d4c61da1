// Package caller tests what the tests of package small leave out.
package caller

import (
	"testing"

	"example.com/small"
)

func TestUnused(t *testing.T) {
	if !small.Unused(true) {
		t.Error("it is done")
	}
}
