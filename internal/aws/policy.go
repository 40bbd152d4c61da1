package aws

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// TagFleet is the key of the tag by which a fleet knows what it has in an account. Its value is the fleet's prefix.
const TagFleet = "remuda:fleet"

// Names are what policies speak of: where a fleet is, and what its things are called there.
type Names struct {
	Region  string // "*" if it is not known
	Account string // 12 digits, or "*"
	Prefix  string // of tables, queues and launch templates
	// Services are those on ECS; none: no policy speaks of them.
	Services []ServiceName
	// VolumeKeys are the KMS keys of volumes: ids, aliases and ARNs. None: no policy speaks of keys.
	VolumeKeys []string
	// HostRole and HostProfile are the names of the hosts' role and instance profile with their paths, or "*".
	HostRole, HostProfile string
	// HostLogs lets hosts send their logs to CloudWatch.
	HostLogs bool
}

// ServiceName is a service of ECS. Region is "*" if it is not known.
type ServiceName struct{ Region, Cluster, Service string }

// Document is an IAM policy.
type Document struct {
	Version   string
	Statement []Statement
}

// Statement allows some actions on some things.
type Statement struct {
	Sid       string
	Effect    string
	Action    []string
	Resource  []string
	Condition Condition `json:",omitempty"`
}

// Condition is an operator, a key and its values.
type Condition map[string]map[string]any

// maxCharacters is how long a policy of a role may be, without white space.
const maxCharacters = 6144

// Policy is what a role needs: one statement for each kind of thing, with just
// the actions that adapters say they call. It names services one by one, unless
// it would be longer than IAM allows: then it names their clusters.
func Policy(role Role, needed []Permission, n Names) Document {
	d := policy(role, needed, n)
	if text, err := json.Marshal(d); err == nil && len(text) > maxCharacters {
		n.Services = clusters(n.Services)
		d = policy(role, needed, n)
	}
	return d
}

func policy(role Role, needed []Permission, n Names) Document {
	d := Document{Version: "2012-10-17"}
	for _, kind := range kinds {
		var actions []string
		for _, p := range needed {
			if p.Role == role && slices.Contains(spread(p.On), kind) && !slices.Contains(actions, p.Action) {
				actions = append(actions, p.Action)
			}
		}
		resources := n.resources(role, kind)
		if len(actions) == 0 || len(resources) == 0 {
			continue
		}
		slices.Sort(actions)
		d.Statement = append(d.Statement, Statement{
			Sid: sid(kind), Effect: "Allow", Action: actions, Resource: resources, Condition: n.condition(role, kind),
		})
	}
	return d
}

// spread are the statements that a kind takes: a launch needs leave for what it
// uses, for its template and for what it makes, each under another condition.
func spread(k Kind) []Kind {
	switch k {
	case OnFleet:
		return []Kind{onUsed, onUsedByFleets, OnTemplates, onMade}
	case OnLaunches:
		return []Kind{onUsed, onUsedByTemplates, OnTemplates, onMade}
	case OnRootVolumes:
		return []Kind{OnMachines, onNewRoots}
	}
	return []Kind{k}
}

// The kinds that OnFleet and OnLaunches stand for, beside OnTemplates.
const (
	// onUsed are named by the call.
	onUsed Kind = "used by launches"
	// onUsedByFleets are what CreateFleet itself is asked for, which does not know the condition of onUsedByTemplates. The launch that
	// follows is held to that.
	onUsedByFleets Kind = "used by fleets"
	// onUsedByTemplates are named by the launch template, and never by the call.
	onUsedByTemplates Kind = "used by templates"
	onMade            Kind = "made by launches"
	// onNewRoots are what a replacement of a root volume makes. The instance that gets it has our tag.
	onNewRoots Kind = "made by replacements"
)

// JSON is the policy as IAM takes it, with a line for each value.
func (d Document) JSON() (string, error) {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write policy: %w", err)
	}
	return string(text) + "\n", nil
}

// sid is a kind as the name of a statement, which has only letters.
func sid(k Kind) string {
	var b strings.Builder
	up := true
	for _, r := range string(k) {
		if up {
			r = unicode.ToUpper(r)
		}
		if up = r == ' '; !up {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// kinds are all of them, in the order of the statements.
var kinds = []Kind{
	OnInstances, OnReports, OnTables, OnQueues, OnTemplates, OnNewTemplates, onUsed, onUsedByFleets, onUsedByTemplates, onMade, OnNewTags, OnMachines, onNewRoots,
	OnOwn, OnHostLogs, OnHostRole, OnVolumeKeys, OnVolumeGrants, OnProfile, OnServices, OnAll,
}

func (n Names) arn(service, resource string) string {
	account, region := n.Account, n.Region
	if service == "iam" {
		region = ""
	}
	return fmt.Sprintf("arn:%s:%s:%s:%s:%s", partitionOf(n.Region).name, service, region, account, resource)
}

// ofAnyAccount is arn for what may belong to another account.
func (n Names) ofAnyAccount(resource string) string {
	n.Account = "*"
	return n.arn("ec2", resource)
}

// ofNoAccount is arn for images and snapshots, whose ARNs name no account.
func (n Names) ofNoAccount(resource string) string {
	n.Account = ""
	return n.arn("ec2", resource)
}

func (n Names) resources(role Role, k Kind) []string {
	switch k {
	case OnInstances:
		return []string{n.table(TableInstances)}
	case OnReports:
		return []string{n.table(TableReports)}
	case OnTables:
		return n.tables(role)
	case OnQueues:
		return []string{n.arn("sqs", n.Prefix+"-*")}
	case OnTemplates, OnNewTemplates, OnMachines, OnOwn, OnNewTags, onUsed, onUsedByFleets, onUsedByTemplates, onMade, onNewRoots:
		return n.machines(role, k)
	case OnServices:
		return n.services()
	case OnVolumeKeys, OnVolumeGrants:
		return n.volumeKeys()
	case OnHostLogs:
		return n.hostLogs()
	case OnHostRole:
		return []string{n.arn("iam", "role/"+n.HostRole)}
	case OnProfile:
		return []string{n.arn("iam", "instance-profile/"+n.HostProfile)}
	}
	return []string{"*"}
}

// table names one by itself: a pattern such as remuda-* would cover the tables of a fleet remuda-prod.
func (n Names) table(name string) string { return n.arn("dynamodb", "table/"+n.Prefix+"-"+name) }

// tables are all of them, with their indexes for a role that queries them.
func (n Names) tables(role Role) []string {
	var all []string
	for _, t := range Tables {
		all = append(all, n.table(t.Name))
	}
	for _, t := range Tables {
		if t.Indexed && role != RoleRefresh {
			all = append(all, n.table(t.Name)+"/index/*")
		}
	}
	return all
}

// services are those of the configuration.
func (n Names) services() []string {
	var all []string
	for _, s := range n.Services {
		n.Region = s.Region
		all = append(all, n.arn("ecs", "service/"+s.Cluster+"/"+s.Service))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// clusters stand for all services of them.
func clusters(services []ServiceName) []ServiceName {
	var all []ServiceName
	for _, s := range services {
		all = append(all, ServiceName{s.Region, s.Cluster, "*"})
	}
	return all
}

// volumeKeys are the keys that a policy names. An alias is no resource of a policy, so it stands for every key of its account, which
// EC2 alone may use.
func (n Names) volumeKeys() []string {
	var all []string
	for _, key := range n.VolumeKeys {
		switch of, _, isAlias := strings.Cut(key, "alias/"); {
		case isAlias && of != "":
			all = append(all, of+"key/*")
		case isAlias:
			all = append(all, n.arn("kms", "key/*"))
		case strings.HasPrefix(key, "arn:"):
			all = append(all, key)
		default:
			all = append(all, n.arn("kms", "key/"+key))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (n Names) machines(role Role, k Kind) []string {
	switch k {
	case OnTemplates, OnNewTemplates:
		return []string{n.arn("ec2", "launch-template/*")}
	case OnNewTags:
		if role == RoleRefresh { // it makes templates alone, and the daemon none
			return n.machines(role, OnNewTemplates)
		}
		return n.made()
	case onMade:
		return n.made()
	case onNewRoots:
		return []string{n.arn("ec2", "replace-root-volume-task/*"), n.arn("ec2", "volume/*")}
	case onUsed:
		// A subnet may be shared by another account (AWS Resource Access Manager).
		return []string{n.ofAnyAccount("subnet/*")}
	case onUsedByFleets:
		return []string{n.ofNoAccount("image/*")}
	case onUsedByTemplates:
		return []string{n.ofAnyAccount("security-group/*"), n.ofNoAccount("image/*"), n.ofNoAccount("snapshot/*")}
	}
	return []string{n.arn("ec2", "instance/*")}
}

// made are what a launch makes.
func (n Names) made() []string {
	var all []string
	for _, kind := range []string{"fleet", "instance", "volume", "network-interface"} {
		all = append(all, n.arn("ec2", kind+"/*"))
	}
	return all
}

// condition narrows a statement beyond what its resources can.
func (n Names) condition(role Role, k Kind) Condition {
	switch k {
	case OnInstances, OnReports:
		if role == RoleHost {
			return ownRows
		}
	case OnQueues:
		return n.ofOurQueues(role)
	case OnTemplates, OnMachines:
		return Condition{"StringEquals": {"ec2:ResourceTag/" + TagFleet: n.Prefix}}
	case OnNewTemplates, onMade:
		return Condition{"StringEquals": {"aws:RequestTag/" + TagFleet: n.Prefix}}
	case onUsedByTemplates:
		// It is false for what a call names itself, also in place of what the template names.
		return Condition{"Bool": {"ec2:IsLaunchTemplateResource": "true"}}
	case OnNewTags:
		if role == RoleRefresh {
			return Condition{"StringEquals": {"ec2:CreateAction": "CreateLaunchTemplate"}}
		}
		return Condition{"StringEquals": {"ec2:CreateAction": []string{"CreateFleet", "RunInstances"}}}
	case OnOwn:
		return Condition{"ArnLike": {"ec2:SourceInstanceARN": "arn:" + partitionOf(n.Region).name + ":ec2:*:*:instance/${ec2:InstanceId}"}}
	case OnVolumeKeys, OnVolumeGrants:
		c := Condition{"StringLike": {"kms:ViaService": "ec2." + n.Region + "." + partitionOf(n.Region).suffix}}
		if k == OnVolumeGrants {
			c["Bool"] = map[string]any{"kms:GrantIsForAWSResource": "true"}
		}
		return c
	case OnHostRole:
		return Condition{"StringEquals": {"iam:PassedToService": partitionOf(n.Region).ec2()}}
	}
	return nil
}

// ofOurQueues keeps a fleet from the queues of another whose prefix begins with its own. Queues without a tag are of a fleet that was last
// refreshed by an older version, so they pass.
func (n Names) ofOurQueues(role Role) Condition {
	tags := map[string]any{"aws:ResourceTag/" + TagFleet: n.Prefix}
	if role == RoleRefresh {
		tags["aws:RequestTag/"+TagFleet] = n.Prefix // of a queue that it makes or tags
	}
	return Condition{"StringEqualsIfExists": tags}
}

// ownRows lets a host touch the rows whose key is its own. Without the second
// operator a request that names no key at all would pass the first.
var ownRows = Condition{
	"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": []string{"${aws:userid}"}},
	"Null":                      {"dynamodb:LeadingKeys": "false"},
}

// Permission is an action that an adapter calls, for the policies of docs/iam.
type Permission struct {
	// Action as IAM names it, such as "dynamodb:GetItem".
	Action string
	// Role is whose policy needs it.
	Role Role
	// On is what kind of thing it acts on.
	On Kind
	// Why is the sentence that stands beside it: the call that needs it.
	Why string
}

// Role is a party that has a policy of its own.
type Role string

// The roles. What only Refresh needs, to create and change resources, is apart,
// so that a daemon can be run without it.
const (
	RoleControld Role = "controld"
	RoleRefresh  Role = "refresh"
	RoleHost     Role = "host"
)

// Kind is what an action acts on. The renderer of policies makes ARNs and conditions of it.
type Kind string

// The kinds.
const (
	OnInstances Kind = "instances table"  // the host's own row
	OnReports   Kind = "reports table"    // the host's own row
	OnTables    Kind = "tables"           // all of them, with their indexes
	OnQueues    Kind = "queues"           // all of them, and no others' with the tag
	OnTemplates Kind = "launch templates" // with our tag
	// OnNewTemplates are launch templates that are being made, with our tag.
	OnNewTemplates Kind = "new launch templates"
	OnFleet        Kind = "fleet"            // what CreateFleet makes and uses
	OnLaunches     Kind = "launches"         // what RunInstances makes and uses, from our templates
	OnNewTags      Kind = "tags on creation" // of what is being made
	OnMachines     Kind = "machines"         // instances with our tag
	OnRootVolumes  Kind = "root volumes"     // those instances, and what gets them a new root volume
	OnOwn          Kind = "own machine"
	OnHostRole     Kind = "host role"     // to be passed to EC2
	OnVolumeKeys   Kind = "volume keys"   // KMS keys of volumes, used by EC2
	OnVolumeGrants Kind = "volume grants" // for EC2, of the same keys
	OnProfile      Kind = "host profile"
	OnServices     Kind = "services"   // of ECS, those of the configuration
	OnAll          Kind = "everything" // actions that know no resource
)
