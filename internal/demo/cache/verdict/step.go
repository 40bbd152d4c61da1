// Package verdict judges what the demo of caches has measured, and shows it.
package verdict

// Step is one run of the workflow, on one host.
type Step struct {
	RunID string `json:"run_id"`
	// What is said of the run in the table.
	What string `json:"what"`
	Host string `json:"host"`
	// Warm: the host has what the run needs in its caches, as far as anything can be there.
	Warm bool `json:"warm"`
	// Ready is how long the run waits for its host: from its call of Provision until a runner with its views listens. Ran is from then on until its
	// last job is over, with the builds Go and NPM in it. Release is until the host is in the pool again, with its caches. All are in seconds.
	Ready   float64 `json:"ready_seconds"`
	Go      float64 `json:"go_seconds"`
	NPM     float64 `json:"npm_seconds"`
	Ran     float64 `json:"ran_seconds"`
	Release float64 `json:"release_seconds"`
	// Downloaded is what the servers of the registries have sent in that time, and Kept what the host keeps after it. In bytes.
	Downloaded int64 `json:"downloaded_bytes"`
	Kept       int64 `json:"kept_bytes"`
	// Expected are the runs whose marks must be in each cache that the run sees, and Found those that are there, by the name of the directory. In order.
	Expected []string            `json:"expected_marks"`
	Found    map[string][]string `json:"found_marks"`
}
