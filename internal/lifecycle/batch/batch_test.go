package batch_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle/batch"
)

// TestShare: the members of a batch have its machines in their order, and what is short is the last ones'.
func TestShare(t *testing.T) {
	t.Parallel()
	member := func(request string, count int) batch.Member {
		return batch.Member{RequestID: request, Launch: 1, Count: count}
	}
	members := []batch.Member{member("a", 2), member("b", 3), member("c", 1)}
	for _, tt := range []struct {
		of       batch.Member
		machines int
		from, to int
		named    bool
	}{
		{members[0], 6, 0, 2, true},
		{members[1], 6, 2, 5, true},
		{members[2], 6, 5, 6, true},
		{members[1], 4, 2, 4, true},
		{members[2], 4, 4, 4, true},
		{member("d", 1), 6, 0, 0, false},
		{batch.Member{RequestID: "a", Launch: 2, Count: 2}, 6, 0, 0, false},
	} {
		if from, to, named := batch.Share(members, tt.of, tt.machines); from != tt.from || to != tt.to || named != tt.named {
			t.Errorf("%+v of %d machines: %d to %d (%t), want %d to %d (%t)", tt.of, tt.machines, from, to, named, tt.from, tt.to, tt.named)
		}
	}
}
