package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	// namedCaches are how many caches of a host are shown each: more would fill the line.
	namedCaches = 3
	// keyDigits are shown of the key of a cache whose name is not known, since it is of another repository or is declared no more.
	keyDigits = 8
)

// caches are those of a host with their sizes, the largest first, and the others as one.
func caches(h *remudav1.Instance) string {
	all := slices.Clone(h.GetCaches())
	slices.SortFunc(all, func(a, b *remudav1.HostCache) int {
		return cmp.Or(cmp.Compare(b.GetBytes(), a.GetBytes()), strings.Compare(cacheName(a), cacheName(b)))
	})
	shown := all[:min(namedCaches, len(all))]
	var parts []string
	for _, c := range shown {
		parts = append(parts, cacheName(c)+" "+cache.Size(int64(c.GetBytes())))
	}
	if rest := all[len(shown):]; len(rest) > 0 {
		var bytes uint64
		for _, c := range rest {
			bytes += c.GetBytes()
		}
		parts = append(parts, fmt.Sprintf("%d more, %s", len(rest), cache.Size(int64(bytes))))
	}
	return strings.Join(parts, ", ")
}

func cacheName(c *remudav1.HostCache) string {
	key := c.GetKey()
	return cmp.Or(c.GetName(), key[:min(keyDigits, len(key))])
}
