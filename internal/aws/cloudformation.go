package aws

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// OwnVolumeKey is the condition of a CloudFormation template under which its hosts' volumes have a KMS key of the account's own.
const OwnVolumeKey = "OwnVolumeKey"

// TemplateNames are the names in a CloudFormation template: its parameters Prefix and VolumeKeyId, its resources HostRole and
// HostProfile, and where the stack is.
func TemplateNames() Names {
	return Names{
		Region: templateRegion, Account: "${AWS::AccountId}", Prefix: "${Prefix}",
		HostRole: "${HostRole}", HostProfile: "${HostProfile}", VolumeKeys: []string{"${VolumeKeyId}"}, HostLogs: true,
	}
}

// templateRegion is a region that is known only when a stack is made.
const templateRegion = "${AWS::Region}"

// conditions are those of a template, by the kind of the statements that it has under them alone.
var conditions = map[string]string{sid(OnVolumeKeys): OwnVolumeKey, sid(OnVolumeGrants): OwnVolumeKey, sid(OnHostLogs): WithHostLogs}

// CloudFormation is the policy as YAML for a template, with Fn::Sub where a text has a name of TemplateNames. The statements about
// keys of volumes are there under the condition OwnVolumeKey, and the one about logs of hosts under WithHostLogs.
func (d Document) CloudFormation() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Version: '%s'\nStatement:\n", d.Version)
	for _, s := range d.Statement {
		lines := s.cloudFormation()
		first, rest := "- ", "  "
		if condition := conditions[s.Sid]; condition != "" {
			fmt.Fprintf(&b, "- !If\n  - %s\n", condition)
			first, rest = "  - ", "    "
		}
		for i, line := range lines {
			indent := rest
			if i == 0 {
				indent = first
			}
			b.WriteString(indent + line + "\n")
		}
		if first != "- " {
			b.WriteString("  - !Ref AWS::NoValue\n")
		}
	}
	return b.String()
}

// cloudFormation are the lines of a statement.
func (s Statement) cloudFormation() []string {
	lines := []string{"Sid: " + s.Sid, "Effect: " + s.Effect, "Action:"}
	for _, action := range s.Action {
		lines = append(lines, "- "+scalar(action))
	}
	lines = append(lines, "Resource:")
	for _, resource := range s.Resource {
		lines = append(lines, "- "+scalar(resource))
	}
	if len(s.Condition) > 0 {
		lines = append(lines, "Condition:")
	}
	for _, operator := range slices.Sorted(maps.Keys(s.Condition)) {
		lines = append(lines, "  "+scalar(operator)+":")
		for _, key := range slices.Sorted(maps.Keys(s.Condition[operator])) {
			switch value := s.Condition[operator][key].(type) {
			case []string:
				lines = append(lines, "    "+key+":")
				for _, one := range value {
					lines = append(lines, "    - "+scalar(one))
				}
			default:
				lines = append(lines, "    "+key+": "+scalar(fmt.Sprint(value)))
			}
		}
	}
	return lines
}

var (
	// ofTemplate is a name that CloudFormation replaces.
	ofTemplate = regexp.MustCompile(`\$\{[A-Z]`)
	// ofPolicy is a variable that IAM replaces, such as ${aws:userid}: they begin with the prefix of a service.
	ofPolicy = regexp.MustCompile(`\$\{([a-z])`)
	// plain is a text that YAML takes for a string without quotes.
	plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9:/_.*-]*$`)
)

// noText are words that YAML takes for something else.
var noText = []string{"true", "false", "Null"}

// scalar is a text as YAML.
func scalar(text string) string {
	switch {
	case ofTemplate.MatchString(text):
		return "!Sub '" + ofPolicy.ReplaceAllString(text, "${!$1") + "'"
	case plain.MatchString(text) && !slices.Contains(noText, text):
		return text
	}
	return "'" + text + "'"
}
