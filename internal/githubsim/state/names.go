package state

import (
	"crypto/sha1"
	"fmt"
	"hash/fnv"
	"strings"
)

// IDOf is a stable id for something the stand-in has no table of: a repository, a user.
func IDOf(name string) int64 {
	h := fnv.New32a()
	h.Write([]byte(strings.ToLower(name)))
	return int64(h.Sum32()%1_000_000_000) + 1
}

// shaOf is the commit that a repository is at.
func shaOf(repository string) string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(strings.ToLower(repository))))
}

func OwnerOf(scope string) string {
	owner, _, _ := strings.Cut(scope, "/")
	return owner
}
