package cost

import "time"

// Bars of an hour of one host, in calls. Jitter makes an hour of 7,200 reads
// and 240 heartbeats come out a little above or below.
const (
	IdleReads      = 7400
	HotReads       = 1900
	RunningReads   = 750
	HourlyWrites   = 250
	WaitingASecond = 4 // batched reads, while a claim waits for its hosts
)

// ClaimCalls is the bar of a warm claim of n hosts, beside the batched reads of
// its waiting: the request is written when it begins, when it has taken hosts
// and when it is settled, its history is written once, each host is claimed and
// made running, and the queue is received from and deleted from in tens.
func ClaimCalls(n int) int { return 4 + 2*n + 2*parts(n, 10) }

// What one call takes: a scan or a listing of machines a page of 1,000, a
// batched read 100 keys.
const (
	page  = 1000
	batch = 100
)

// LivenessCalls is how many calls the liveness sweep makes for a fleet without a silent
// host: a scan of the reports. A full page may be the last one, which only the next
// call shows.
func LivenessCalls(hosts int) int { return hosts/page + 1 }

// CloudCalls is how many calls of EC2 the cloud sweep makes for a fleet without a lost
// host, with idle hosts in one pool: the version of the pool's launch template tells
// whether they have drifted from it.
func CloudCalls(hosts int) int { return parts(hosts, page) + 1 }

// CloudReads is what that sweep reads from the store: the records of all
// machines, in batches, and all reports.
func CloudReads(hosts int) int { return parts(hosts, batch) + LivenessCalls(hosts) }

// NoticeReceives is how often an hour the replica that sweeps asks for what EC2
// announces, while there is nothing: each receive waits for so long.
func NoticeReceives(wait time.Duration) int { return int(time.Hour / wait) }

// parts is n/size, rounded up.
func parts(n, size int) int { return (n + size - 1) / size }
