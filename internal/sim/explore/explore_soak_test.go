//go:build soak

package explore_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/sim/explore"
)

func TestLateReadsOfAll(t *testing.T) { lateReads(t, explore.Small) }
