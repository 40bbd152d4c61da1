package config

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
)

var (
	reservedTag = regexp.MustCompile(`(?i)^(aws|remuda):`)
	tagKey      = regexp.MustCompile(`^[A-Za-z0-9+=._:@-]{1,127}$`) // what EC2's model takes and instance metadata can show
	noTagKey    = []string{".", "..", "_index"}                     // they would be paths of the metadata, so EC2 refuses the launch
	tagValue    = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+@-]*$`)
)

const (
	// maxTags leaves room for the fleet's own, within the 50 that EC2, DynamoDB, SQS and EventBridge allow for each resource.
	maxTags = 30
	// longestTagValue is the limit of all four, in characters. It is not part of tagValue: hundreds of
	// ranges, repeated 256 times, took 20 ms to compile, half of the start of the program.
	longestTagValue = 256
	// maxTagBytes is what DynamoDB takes for a table, 10 KB, without the fleet's own tag.
	// Source: Amazon DynamoDB Developer Guide, "Using attribute-based access control with DynamoDB".
	maxTagBytes = 9900
)

// validateTags checks tags of what is of EC2.
func validateTags(at strictyaml.Place, tags map[string]string) {
	if len(tags) > maxTags {
		at.Errorf("has %d entries; write at most %d, since AWS allows 50 and the fleet has its own", len(tags), maxTags)
	}
	for key, value := range tags {
		switch {
		case reservedTag.MatchString(key):
			at.At(key).Errorf("begins with aws: or remuda:, which are taken; write another key")
		case !tagKey.MatchString(key), slices.Contains(noTagKey, key):
			at.At(key).Errorf("is no key of a tag; write 1 to 127 of letters, digits and + - = . _ : @")
		case !tagValue.MatchString(value), utf8.RuneCountInString(value) > longestTagValue:
			at.At(key).Errorf("is no value of a tag; write at most 256 letters, digits, spaces and _ . : / = + - @")
		}
	}
}

// validateTagsOfTables checks what DynamoDB alone refuses. Source: Amazon DynamoDB Developer Guide, "Tagging restrictions in DynamoDB".
func validateTagsOfTables(at strictyaml.Place, tags map[string]string) {
	size := 0
	for key, value := range tags {
		size += len(key) + len(value)
		if strings.Contains(key+value, "@") {
			at.At(key).Errorf("has an @, which tags of tables may not have; leave it out, or write the tag under aws.ec2.tags")
		}
	}
	if size > maxTagBytes {
		at.Errorf("have %d bytes together; write at most %d, since DynamoDB takes 10 KB of a table", size, maxTagBytes)
	}
}
