package main

import "testing"

// TestCachesOfAHost: docker is for the jobs of a privileged pool, which have no other cache.
func TestCachesOfAHost(t *testing.T) {
	for name, tt := range map[string]struct {
		privileged bool
		holds      string
		want       int
	}{
		"docker":                       {true, "docker", 1},
		"docker that no job may use":   {false, "docker", 0},
		"files":                        {false, "", 1},
		"files that root can write to": {true, "files", 0},
	} {
		c := config{Caches: []cacheConfig{{Name: "x", Holds: tt.holds, SizeMiB: 1}}}
		c.Host.Privileged = tt.privileged
		if got := len(c.caches()); got != tt.want {
			t.Errorf("%s: %d caches", name, got)
		}
	}
}
