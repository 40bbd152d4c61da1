package proc

import "time"

// Bounds of the loops that kill processes and scan /proc until none is left.
const (
	// KillLimit is how long processes may take to die of SIGKILL. It is far more than any needs that is not stuck in the
	// kernel.
	KillLimit = 10 * time.Second
	// KillPause is between two scans for processes that are being killed.
	KillPause = 5 * time.Millisecond
	// QuietScans is how many scans in a row must find nothing. A process can slip past one scan: it is born, behind the
	// place that the scan has reached, to a parent that dies before the scan gets there. Two in a row are hardly escaped.
	QuietScans = 2
)
