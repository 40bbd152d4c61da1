package aws

import (
	"maps"
	"slices"
	"strings"
)

// FleetTags are the tags of a table or queue of a fleet: those of its owner, and its own, by which the fleet knows it.
func FleetTags(prefix string, owner map[string]string) map[string]string {
	tags := map[string]string{}
	maps.Copy(tags, owner)
	tags[TagFleet] = prefix
	return tags
}

// LackingTags are the tags of want that found has not, or has with another value. Other tags of found are not the fleet's, and stay.
func LackingTags(found, want map[string]string) map[string]string {
	lacking := maps.Clone(want)
	maps.DeleteFunc(lacking, func(key, value string) bool {
		is, ok := found[key]
		return ok && is == value
	})
	return lacking
}

// WhyTagged is the reason to give something the tags that it lacks, for people.
func WhyTagged(lacking map[string]string) string {
	return "tags were missing or different: " + strings.Join(slices.Sorted(maps.Keys(lacking)), ", ")
}
