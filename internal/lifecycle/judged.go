package lifecycle

// Judged is the record of a host that its run has just left, with the caches that the run may change, and what the host needs to fetch for one that holds
// git. Unjudged: GitHub did not say which. A host that is stopped again says of no clean-up whether it was used, and is judged only where its run could be root:
// see Policy.DockerCache. If that may change nothing, or GitHub did not say so, no other run gets the host.
func (r Record) Judged(keep []string, m *Mirror, unjudged bool) Record {
	r.KeepCaches, r.Mirror, r.Unjudged = keep, m, unjudged && r.Releasing()
	if r.Stopped() && len(keep) == 0 {
		r.Retiring, r.RetiringReason = true, untrustedRun.Text
	}
	return r
}
