// Package forecast answers what a policy would have made of recorded jobs, for `remuda plan --history`: how long they would have waited, and
// what it would have cost, beside another policy and beside a fresh machine for each job. It reads policy files, has internal/replay play them,
// and prints what came of it. Cheapest searches for a policy itself.
package forecast
