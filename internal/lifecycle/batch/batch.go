// Package batch names the launches that one call to the cloud serves together.
package batch

// Repository stands for the repository in the rows of batches and in the tags of their machines. No repository has
// such a name. It is warmrequest.Repository: a batch serves no single repository either.
const Repository = "-"

// Run is the run id in the rows of a pool's batches. No caller's run id has a colon.
func Run(pool string) string { return "batch:" + pool }

// Member is the launch of one request within a batch.
type Member struct {
	Repository string `json:"repository"`
	RunID      string `json:"runId"`
	RequestID  string `json:"requestId"`
	Launch     int    `json:"launch"` // its number
	Count      int    `json:"count"`  // how many machines it orders
}

// Share is where the machines of a member are in the list of the batch's machines: from is its first, to is after its last. The
// members have their machines in the order of the list, so that a shortage falls on the last ones. A launch that is not a
// member has no share: named is false.
func Share(members []Member, m Member, machines int) (from, to int, named bool) {
	for _, other := range members {
		if other == m {
			return min(from, machines), min(from+m.Count, machines), true
		}
		from += other.Count
	}
	return 0, 0, false
}
