package config_test

import "testing"

func TestResetRules(t *testing.T) {
	for name, test := range map[string]struct{ pool, want string }{
		"no reuse": {`{reuse: none, reset: root-volume}`, `pools.x.reset: means nothing with reuse: none, where no host serves another run`},
		"caches":   {`{reset: root-volume, caches: [{name: go, paths: [~/go], size_mib: 1}]}`, `pools.x.reset: is refused with caches`},
		"hot":      {`{reset: root-volume, standby: listening}`, `pools.x.standby: is listening, and with reset: root-volume a host waits for the run of any repository`},
		"a typo":   {`{reset: root}`, `pools.x.reset: "root" is not allowed; did you mean root-volume?`},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, token+"pools:\n  x: "+test.pool+"\n", test.want) })
	}
}
