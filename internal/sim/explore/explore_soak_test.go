//go:build soak

package explore_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/sim/explore"
)

func TestLarge(t *testing.T) { all(t, explore.Large) }
