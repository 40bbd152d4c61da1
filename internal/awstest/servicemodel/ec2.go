package servicemodel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What EC2 refuses and its model does not say. Sources, all in the EC2 documentation:
//   - "Ensuring idempotency in Amazon EC2 API requests": a client token has up to 64 ASCII characters.
//   - "Tag your Amazon EC2 resources", Tag restrictions: 50 tags a resource, a value of up to 256 characters, no key that begins with aws:, each
//     key once. A key has 1 to 128 characters there, and up to 127 in the model's own text.
//   - CreateFleetRequest.TagSpecifications in the model's own text: an instant fleet tags fleet, instance, volume and network-interface.
//   - "Specify attributes for instance type selection for EC2 Fleet", Considerations: four InstanceRequirements in a request; and
//     InstanceRequirementsRequest in the model's own text: AllowedInstanceTypes and ExcludedInstanceTypes exclude each other, and so do the two
//     price protections of spot.
//   - The model's own text: a launch template is named by its id or its name, and for a fleet with its version; instances are asked for by ids or
//     page by page.
const (
	maxToken        = 64
	maxTags         = 50
	maxTagKey       = 127
	maxTagValue     = 256
	maxRequirements = 4
)

// instantTags are the resources that a fleet of type instant tags.
var instantTags = []string{"fleet", "instance", "volume", "network-interface"}

// checkEC2 holds a request against what EC2's model does not say.
func (c *checker) checkEC2(input map[string]any) {
	c.checkToken(input)
	c.walk("", input)
	c.checkTogether("", input)
	if c.request.Operation == "CreateFleet" {
		c.checkFleet(input)
	}
}

func (c *checker) checkToken(input map[string]any) {
	token, _ := input["ClientToken"].(string)
	if len(token) > maxToken {
		c.breaks("ClientToken", "has %d characters, want at most %d", len(token), maxToken)
	}
	if strings.IndexFunc(token, func(r rune) bool { return r > 0x7f }) >= 0 {
		c.breaks("ClientToken", "is %q, want ASCII", token)
	}
}

// walk checks the lists of tags, wherever they are.
func (c *checker) walk(path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, under := range value {
			if tags, ok := under.([]any); ok && name == "Tag" {
				c.checkTags(join(path, name), tags)
			} else {
				c.walk(join(path, name), under)
			}
		}
	case []any:
		for i, item := range value {
			c.walk(fmt.Sprintf("%s[%d]", path, i), item)
		}
	}
}

// apart are members that no structure has together.
var apart = [][2]string{
	{"LaunchTemplateId", "LaunchTemplateName"},
	{"AllowedInstanceType", "ExcludedInstanceType"},
	{"InstanceType", "InstanceRequirements"},
	{"SpotMaxPricePercentageOverLowestPrice", "MaxSpotPriceAsPercentageOfOptimalOnDemandPrice"},
	{"InstanceId", "MaxResults"},
}

// checkTogether checks what members of one structure say together, wherever it is.
func (c *checker) checkTogether(path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, pair := range apart {
			if value[pair[0]] != nil && value[pair[1]] != nil {
				c.breaks(path, "has %s and %s, want one of them", pair[0], pair[1])
			}
		}
		least, most := bound(value["Min"]), bound(value["Max"])
		if least > most && value["Max"] != nil {
			c.breaks(path, "is from %v to %v", least, most)
		}
		for name, under := range value {
			c.checkTogether(join(path, name), under)
		}
	case []any:
		for i, item := range value {
			c.checkTogether(fmt.Sprintf("%s[%d]", path, i), item)
		}
	}
}

// bound is one end of a range.
func bound(value any) float64 {
	text, _ := value.(string)
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

func (c *checker) checkTags(path string, tags []any) {
	if len(tags) > maxTags {
		c.breaks(path, "has %d tags, want at most %d", len(tags), maxTags)
	}
	seen := map[string]bool{}
	for i, tag := range tags {
		pair, _ := tag.(map[string]any)
		key, _ := pair["Key"].(string)
		value, _ := pair["Value"].(string)
		at := fmt.Sprintf("%s[%d]", path, i)
		if n := utf8.RuneCountInString(key); n < 1 || n > maxTagKey {
			c.breaks(at+".Key", "has %d characters, want 1 to %d", n, maxTagKey)
		}
		if n := utf8.RuneCountInString(value); n > maxTagValue {
			c.breaks(at+".Value", "has %d characters, want at most %d", n, maxTagValue)
		}
		if strings.HasPrefix(strings.ToLower(key), "aws:") {
			c.breaks(at+".Key", "is %q, and aws: is reserved", key)
		}
		if seen[key] {
			c.breaks(at+".Key", "is %q a second time", key)
		}
		seen[key] = true
	}
}

func (c *checker) checkFleet(input map[string]any) {
	specs, _ := input["TagSpecification"].([]any)
	for i, spec := range specs {
		of, _ := spec.(map[string]any)
		if resource, _ := of["ResourceType"].(string); input["Type"] == "instant" && !slices.Contains(instantTags, resource) {
			c.breaks(fmt.Sprintf("TagSpecification[%d].ResourceType", i), "is %q, want for an instant fleet one of %s", resource, strings.Join(instantTags, ", "))
		}
	}
	requirements := 0
	configs, _ := input["LaunchTemplateConfigs"].([]any)
	for i, config := range configs {
		of, _ := config.(map[string]any)
		if template, ok := of["LaunchTemplateSpecification"].(map[string]any); ok && template["Version"] == nil {
			c.breaks(fmt.Sprintf("LaunchTemplateConfigs[%d].LaunchTemplateSpecification.Version", i), "is missing, and required")
		}
		overrides, _ := of["Overrides"].([]any)
		for _, override := range overrides {
			if of, _ := override.(map[string]any); of["InstanceRequirements"] != nil {
				requirements++
			}
		}
	}
	if requirements > maxRequirements {
		c.breaks("LaunchTemplateConfigs", "has %d InstanceRequirements, want at most %d", requirements, maxRequirements)
	}
}
