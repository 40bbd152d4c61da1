package explore

// Small are the bounds that every test run explores: together they put any two
// operations beside each other, for two hosts, two replicas and two requests,
// with each fault at every point. They take some twenty seconds.
var Small = []Bounds{
	{Name: "a release and a crash", Pooled: 1, Asks: oneAsk, Releases: 1, Crashes: 1, Passes: 1, Assignments: 3},
	{Name: "a lost answer", Pooled: 1, Asks: oneAsk, Lost: 1, Passes: 1, Assignments: 3},
	{Name: "a job of a run that is not released", Pooled: 1, Asks: oneAsk, Jobs: 1, Passes: 1, Assignments: 3},
	{Name: "two requests for two hosts", Pooled: 2, Asks: twoAsks, Passes: 1, Assignments: 3},
	{Name: "a launch and a crash", Capacity: 1, Asks: oneAsk, Releases: 1, Crashes: 1, Passes: 1, Assignments: 3},
	{Name: "one request asked twice", Pooled: 2, Unsent: 1, Asks: oneAskForTwo, Retries: 1, Assignments: 3},
	{Name: "a lost answer and a release", Pooled: 1, Asks: oneAsk, Releases: 1, Lost: 1, Passes: 1, Assignments: 3},
	{Name: "one request asked twice, and a crash", Pooled: 1, Asks: oneAsk, Retries: 1, Crashes: 1, Passes: 1, Assignments: 3},
	{Name: "two sweeps at once", Pooled: 1, Asks: oneAsk, Passes: 1, Sweeps: 2, Assignments: 3},
	{Name: "two requests for one host", Pooled: 1, Asks: twoAsks, Failures: 1, Passes: 1, Assignments: 3},
	{Name: "a job of a run that is released", Pooled: 1, Asks: oneAsk, Releases: 1, Jobs: 1, Passes: 1, Assignments: 3},
	{Name: "a sweep beside a request and its release", Pooled: 1, Asks: oneAsk, Releases: 1, Passes: 1, Sweeps: 1, Assignments: 3},
	{Name: "a sweep that starts idle", Pooled: 1, Asks: oneAsk, Releases: 1, Crashes: 1, Passes: 1, Sweeps: 1, Idle: true, Assignments: 3},
	{Name: "a release beside a request", Pooled: 1, Capacity: 1, Asks: oneAskForTwo, Releases: 1, Passes: 1, Assignments: 3},
	{Name: "two requests for two hosts, one fails", Pooled: 2, Asks: twoAsks, Failures: 1, Passes: 1, Assignments: 3},
	{Name: "two requests for two hosts, and a release", Pooled: 2, Asks: twoAsks, Releases: 1, Passes: 1, Assignments: 3},
	{Name: "two requests for one host, and a sweep", Pooled: 1, Asks: twoAsks, Passes: 1, Sweeps: 1, Assignments: 3},
	{Name: "a launch, a claim, a release and a crash", Pooled: 1, Capacity: 1, Asks: oneAskForTwo, Releases: 1, Crashes: 1, Passes: 1, Assignments: 3},
	{Name: "two sweeps of two hosts", Pooled: 2, Asks: oneAsk, Passes: 1, Sweeps: 2, Assignments: 3},
	{Name: "a release, a sweep and a crash", Pooled: 1, Asks: oneAsk, Releases: 1, Crashes: 1, Passes: 1, Sweeps: 1, Assignments: 3},
	{Name: "a job, a release and a sweep", Pooled: 1, Asks: oneAsk, Releases: 1, Jobs: 1, Passes: 1, Sweeps: 1, Assignments: 3},
	{Name: "a hot host, a lost runner and a crash", Pooled: 1, Hot: true, Asks: oneAsk, Lost: 1, Failures: 1, Crashes: 1, Passes: 1, Assignments: 4},
	{Name: "a hot host, a release and a crash", Pooled: 1, Hot: true, Asks: oneAsk, Releases: 1, Lost: 1, Crashes: 1, Passes: 1, Assignments: 4},
	{Name: "a hot host, a release and a sweep", Pooled: 1, Hot: true, Asks: oneAsk, Releases: 1, Crashes: 1, Passes: 1, Sweeps: 1, Assignments: 4},
	{Name: "a hot host, a job and a lost runner", Pooled: 1, Hot: true, Asks: oneAsk, Jobs: 1, Lost: 1, Failures: 1, Passes: 1, Assignments: 4},
	{Name: "two hot hosts", Pooled: 2, Hot: true, Asks: twoAsks, Lost: 1, Passes: 1, Assignments: 4},
	{Name: "a launch, a crash and a lost answer", Capacity: 1, Asks: oneAsk, Releases: 1, Failures: 1, Crashes: 1, Lost: 1, Passes: 1, Assignments: 3},
	{Name: "a drain", Pooled: 1, Asks: oneAsk, Releases: 1, Passes: 1, Drains: 1, Assignments: 3},
	{Name: "a drain, a release and a crash", Pooled: 1, Asks: oneAsk, Releases: 1, Crashes: 1, Passes: 1, Drains: 1, Assignments: 3},
	{Name: "a drain beside a launch", Pooled: 1, Capacity: 1, Asks: oneAsk, Releases: 1, Passes: 1, Drains: 1, Assignments: 3},
	{Name: "a drain, a job and a sweep", Pooled: 1, Asks: oneAsk, Jobs: 1, Passes: 1, Sweeps: 1, Drains: 1, Assignments: 3},
	{Name: "a drain of a hot host", Pooled: 1, Hot: true, Asks: oneAsk, Releases: 1, Passes: 1, Drains: 1, Assignments: 4},
	{Name: "a pause", Pooled: 1, Capacity: 1, Asks: oneAsk, Passes: 1, Pauses: 1, Assignments: 3},
	{Name: "a pause, a release and a crash", Pooled: 1, Capacity: 1, Asks: oneAsk, Releases: 1, Crashes: 1, Pauses: 1, Assignments: 3},
	{Name: "a pause beside a launch", Pooled: 1, Capacity: 2, Asks: oneAskForTwo, Passes: 1, Pauses: 1, Assignments: 3},
	{Name: "a pause, a sweep and a crash", Pooled: 1, Capacity: 1, Asks: oneAsk, Crashes: 1, Passes: 1, Sweeps: 1, Pauses: 1, Assignments: 3},
	{Name: "a reset and a crash", Pooled: 1, Resets: true, Asks: oneAsk, Releases: 1, Crashes: 1, Passes: 1, Assignments: 4},
	{Name: "a reset, a lost answer and a sweep", Pooled: 1, Resets: true, Asks: oneAsk, Releases: 1, Lost: 1, Sweeps: 1, Assignments: 4},
	{Name: "a stop and a crash", Pooled: 1, Stops: true, Asks: oneAsk, Releases: 1, Crashes: 1, Passes: 1, Sweeps: 1, Assignments: 3},
	{Name: "a stop and a lost answer", Pooled: 1, Stops: true, Asks: oneAsk, Lost: 1, Passes: 1, Sweeps: 1, Assignments: 3},
	{Name: "two pauses", Pooled: 1, Capacity: 1, Asks: oneAsk, Lost: 1, Pauses: 2, Assignments: 3},
	{Name: "a pause, a drain and two requests", Pooled: 2, Capacity: 1, Asks: twoAsks, Drains: 1, Pauses: 1, Assignments: 3},
}

// Large are bounds of two requests, mostly for two hosts, with more of everything else.
// They take from seconds to some minutes each. "Everything" is the one that has
// all of it at once; the others have less of it and something more.
var Large = []Bounds{
	{Name: "a release and a failed registration", Pooled: 2, Asks: twoAsks, Releases: 1, Failures: 1, Passes: 1, Assignments: 3},
	{Name: "a release and a lost answer", Pooled: 2, Asks: twoAsks, Releases: 1, Lost: 1, Passes: 1, Assignments: 3},
	{Name: "a release and a job", Pooled: 2, Asks: twoAsks, Releases: 1, Jobs: 1, Passes: 1, Assignments: 3},
	{Name: "two releases and a crash", Pooled: 2, Asks: twoAsks, Releases: 2, Crashes: 1, Passes: 1, Assignments: 3},
	{Name: "a release, a crash and more time", Pooled: 2, Asks: twoAsks, Releases: 1, Crashes: 1, Passes: 2, Assignments: 3},
	{Name: "a host in the pool and one to launch", Pooled: 1, Capacity: 1, Asks: twoAsks, Releases: 1, Crashes: 1, Passes: 1, Assignments: 3},
	{Name: "sweeps and a failed registration", Pooled: 2, Asks: twoAsks, Failures: 1, Passes: 1, Sweeps: 1, Assignments: 3},
	{Name: "a host in the pool and one to launch, and sweeps", Pooled: 1, Capacity: 1, Asks: twoAsks, Releases: 1, Passes: 1, Sweeps: 1, Assignments: 3},
	{Name: "a hot host, a release, a job and a lost runner", Pooled: 1, Hot: true, Asks: oneAsk, Releases: 1, Jobs: 1, Lost: 1, Failures: 1, Passes: 1, Assignments: 4},
	{Name: "two hot hosts, a release and a crash", Pooled: 2, Hot: true, Asks: twoAsks, Releases: 1, Crashes: 1, Passes: 1, Assignments: 4},
	{Name: "a hot host, a release, a lost answer and a crash", Pooled: 1, Hot: true, Asks: oneAsk, Releases: 1, Lost: 1, Failures: 1, Crashes: 1, Passes: 1, Sweeps: 1, Assignments: 4},
	{Name: "a drain, a release and a sweep", Pooled: 1, Asks: twoAsks, Releases: 1, Passes: 1, Sweeps: 1, Drains: 1, Assignments: 3},
	{Name: "two hosts, a drain and a release", Pooled: 2, Asks: twoAsks, Releases: 1, Passes: 1, Drains: 1, Assignments: 3},
	{Name: "a drain of a hot host, a release and a sweep", Pooled: 1, Hot: true, Asks: oneAsk, Releases: 1, Passes: 1, Sweeps: 1, Drains: 1, Assignments: 4},
	{Name: "two hosts, a pause, a release and a crash", Pooled: 2, Capacity: 1, Asks: twoAsks, Releases: 1, Crashes: 1, Pauses: 1, Assignments: 3},
	{Name: "a reset, a lost answer, a sweep and more time", Pooled: 1, Resets: true, Asks: oneAsk, Releases: 1, Lost: 1, Passes: 1, Sweeps: 1, Assignments: 4},
	{Name: "a reset, a job and two sweeps", Pooled: 1, Resets: true, Asks: oneAsk, Releases: 1, Jobs: 1, Passes: 1, Sweeps: 2, Assignments: 4},
	{Name: "two requests for a host that is reset", Pooled: 1, Resets: true, Asks: twoAsks, Releases: 1, Passes: 1, Sweeps: 1, Assignments: 5},
	{Name: "a reset and a drain", Pooled: 1, Resets: true, Asks: oneAsk, Releases: 1, Passes: 1, Sweeps: 1, Drains: 1, Assignments: 4},
	{Name: "two requests for a host that is stopped", Pooled: 1, Stops: true, Asks: twoAsks, Releases: 1, Passes: 1, Sweeps: 1, Assignments: 3},
	{Name: "a stop, two sweeps and a release", Pooled: 1, Stops: true, Asks: oneAsk, Releases: 1, Passes: 1, Sweeps: 2, Assignments: 3},
	{Name: "everything", Pooled: 2, Asks: twoAsks, Releases: 1, Crashes: 1, Passes: 1, Sweeps: 1, Assignments: 3},
}

var (
	oneAsk       = []Ask{{Run: "run-1", Count: 1, Minimum: 1}}
	oneAskForTwo = []Ask{{Run: "run-1", Count: 2, Minimum: 1}}
	twoAsks      = []Ask{{Run: "run-1", Count: 1, Minimum: 1}, {Run: "run-2", Count: 1, Minimum: 1}}
)
