package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/permissions"
	"github.com/remuda-ci/remuda/internal/services/ecs"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
)

var accountID = regexp.MustCompile(`^[0-9]{12}$`)

// iamPolicy prints a policy, or what each action is for. It makes no call.
func iamPolicy(_ context.Context, call *call) error {
	var path, role, account, hostRole, hostProfile, format string
	var explain, hostLogs bool
	if _, err := call.parse(0, func(f *flag.FlagSet) {
		f.StringVar(&path, "config", "", "the configuration `FILE`, with an aws section")
		f.StringVar(&role, "role", string(aws.RoleControld), "whose policy, `ROLE`: controld, refresh or host")
		f.StringVar(&account, "account", "*", "the `ID` of the account, 12 digits; * for any")
		f.StringVar(&hostRole, "host-role", "", "the `NAME` of the hosts' role with its path, if it is not called like their profile")
		f.StringVar(&hostProfile, "host-profile", "", "the `NAME` of the hosts' instance profile with its path, if it has one")
		f.BoolVar(&hostLogs, "host-logs", false, "let hosts send their logs to CloudWatch, for images with the agent that does")
		f.StringVar(&format, "format", "json", "`json` for IAM, or cloudformation for a template, without a configuration")
		f.BoolVar(&explain, "explain", false, "list every action with the call that needs it, instead")
	}); err != nil {
		return err
	}
	roles := []aws.Role{aws.RoleControld, aws.RoleRefresh, aws.RoleHost}
	switch {
	case explain:
		return explainActions(call.stdout, roles)
	case format != "json" && format != "cloudformation":
		return call.misused("--format %.40q is neither json nor cloudformation", format)
	case !slices.Contains(roles, aws.Role(role)):
		return call.misused("--role %.40q is none of controld, refresh and host", role)
	case format == "cloudformation" && path != "":
		return call.misused("--format cloudformation takes the names of a template's parameters and resources, and so no --config")
	case format == "cloudformation":
		_, err := io.WriteString(call.stdout, aws.Policy(aws.Role(role), permissions.Needed(permissions.Uses{}), aws.TemplateNames()).CloudFormation())
		return err
	case path == "":
		return call.misused("--config is required")
	case account != "*" && !accountID.MatchString(account):
		return call.misused("--account %.40q is not the id of an account: 12 digits", account)
	}
	c, err := config.Load(path)
	if err != nil {
		return wrongConfig(err)
	}
	names, needed := policyNames(c, account, hostRole, hostProfile), permissions.Needed(uses(c))
	names.HostLogs = hostLogs
	switch {
	case c.WithoutHosts && aws.Role(role) == aws.RoleHost:
		return &configError{fmt.Errorf("%s has services only: there are no hosts that need a role", path)}
	case c.WithoutHosts && c.Backend() == config.BackendAWS:
		needed = slices.Concat(dynamo.Actions(), ecs.Actions())
	case c.Backend() == config.BackendAWS:
	case len(names.Services) == 0 || aws.Role(role) != aws.RoleControld:
		return &configError{fmt.Errorf("%s has no aws section: a fleet on this machine needs no policies, but controld one for services on ECS", path)}
	default:
		needed = ecs.Actions()
	}
	text, err := aws.Policy(aws.Role(role), needed, names).JSON()
	if err != nil {
		return err
	}
	_, err = io.WriteString(call.stdout, text)
	return err
}

// policyNames are the names that a policy allows. Where the configuration names no region they allow any.
func policyNames(c *config.Config, account, hostRole, hostProfile string) aws.Names {
	a := c.AWS
	if a == nil { // on this machine, with nothing in AWS but services
		a = &config.AWS{}
	}
	n := aws.Names{
		Region: cmp.Or(a.Region, "*"), Account: account, Prefix: a.Prefix,
		HostProfile: cmp.Or(hostProfile, a.InstanceProfile), HostRole: cmp.Or(hostRole, a.InstanceProfile),
	}
	for pool := range c.Pools {
		if c.AWS == nil {
			break
		}
		// AWS's own key for EBS may be used by all that use EBS.
		if key := c.PoolEC2(pool).KMSKeyID; key != "" && !strings.HasSuffix(key, "alias/aws/ebs") {
			n.VolumeKeys = append(n.VolumeKeys, key)
		}
	}
	for name, s := range c.Services {
		if s.Scaled() {
			n.Services = append(n.Services, aws.ServiceName{Region: cmp.Or(c.ServiceRegion(name), "*"), Cluster: s.Cluster, Service: s.ECSService})
		}
	}
	return n
}

func explainActions(out io.Writer, roles []aws.Role) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ROLE\tACTION\tON\tWHY")
	for _, role := range roles {
		for _, p := range permissions.All() {
			if p.Role == role {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Role, p.Action, p.On, p.Why)
			}
		}
	}
	return w.Flush()
}

// uses says what the pools of a configuration need of EC2 beside what all do.
func uses(c *config.Config) permissions.Uses {
	return permissions.Uses{Stops: c.StopsHosts(), Resets: c.ResetsRoots()}
}
