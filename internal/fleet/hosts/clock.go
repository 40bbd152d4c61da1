package hosts

import (
	"time"
)

func ClockTime(t time.Time) string { return t.UTC().Format("15:04:05Z") }
