// Command first-account holds what Remuda assumes about AWS against an account: see docs/first-account.md. scripts/first-account builds
// and runs it. It exits 0 if nothing is refuted, 1 if something is, and 2 if the checks could not be made or something that they made is left.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/firstaccount"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

func main() { os.Exit(findings.Program("first-account", run)) }

const usage = `usage: scripts/first-account [--plan | --yes | --clean] [options]

Holds what Remuda assumes about AWS against an account: it launches a few of the smallest machines for some minutes, with
roles of their own, looks at them, and removes everything. It costs less than $0.05. See docs/first-account.md.

It takes its credentials, those of an administrator, and the region from where the AWS CLI takes them: AWS_PROFILE, AWS_REGION.
`

// command is what the arguments say.
type command struct {
	firstaccount.Options
	region, output   string
	plan, yes, clean bool
	// version: print it and do nothing else.
	version bool
}

func parse(args []string, progress io.Writer) (c command, err error) {
	flags := flag.NewFlagSet("first-account", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.Usage = func() {
		fmt.Fprintf(progress, "%s\n", usage)
		flags.PrintDefaults()
	}
	flags.BoolVar(&c.plan, "plan", false, "say what would be made and done, and make nothing")
	flags.BoolVar(&c.yes, "yes", false, "make the checks")
	flags.BoolVar(&c.clean, "clean", false, "remove what earlier runs have left in the account and region, and nothing else")
	flags.StringVar(&c.region, "region", "", "the `REGION`, if it is not that of the environment")
	subnets := flags.String("subnet", "", "the `IDS` of subnets, separated by commas, whose machines reach AWS; without them those of the default VPC")
	groups := flags.String("security-group", "", "the `IDS` of the machines' security groups, separated by commas; without them the default one of the VPC")
	flags.StringVar(&c.Image, "image", "", "the `ID` of an image of the fleet, to measure its boot; without it that of Amazon Linux 2023 for arm64")
	flags.StringVar(&c.KMSKeyID, "kms-key-id", "", "the `KEY` of a machine's volume, to check the policy's statements about keys")
	flags.DurationVar(&c.Times.Poll, "poll", 0, "the `TIME` between two looks (default 2s)")
	flags.DurationVar(&c.Times.Settle, "settle", 0, "the `TIME` for which AWS may not know new roles and tags (default 1m)")
	flags.DurationVar(&c.Times.Turn, "turn", 0, "the `TIME` between two calls of CreateFleet in the check of rates (default 500ms)")
	flags.DurationVar(&c.Times.Boot, "boot", 0, "the `TIME` that a machine may take to boot (default 6m)")
	flags.DurationVar(&c.Times.All, "limit", 0, "the `TIME` that all checks may take together (default 45m)")
	flags.DurationVar(&c.Times.Clean, "clean-time", 0, "the `TIME` that the removal may take (default 6m)")
	only := flags.String("only", "", "`NAMES` of checks, separated by commas: "+strings.Join(firstaccount.Checks(), ", "))
	flags.StringVar(&c.output, "output", "text", "text or json")
	flags.BoolVar(&c.version, "version", false, "print version, commit and Go version, and nothing else")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	modes := 0
	for _, on := range []bool{c.plan, c.yes, c.clean} {
		if on {
			modes++
		}
	}
	if flags.NArg() > 0 || modes > 1 || c.output != "text" && c.output != "json" {
		return c, errors.New("usage: scripts/first-account [--plan | --yes | --clean] [--output text|json]; --help lists the rest")
	}
	if *subnets != "" {
		c.Subnets = strings.Split(*subnets, ",")
	}
	if *groups != "" {
		c.Groups = strings.Split(*groups, ",")
	}
	if *only != "" {
		c.Only = strings.Split(*only, ",")
	}
	c.Progress = progress
	return c, nil
}

func run(ctx context.Context, args []string, out, progress io.Writer) (int, error) {
	c, err := parse(args, progress)
	if err != nil {
		return findings.ExitFailed, err
	}
	if c.version {
		_, err = fmt.Fprintln(out, telemetry.VersionLine("first-account"))
		return findings.ExitCode(nil, err)
	}
	c.AWS, err = aws.Load(ctx, aws.Options{Region: c.region, Program: "remuda-first-account"})
	var none *aws.RegionError
	switch {
	case errors.As(err, &none):
		return findings.ExitFailed, fmt.Errorf("%q is no region: give --region or set AWS_REGION, such as eu-west-1", none.Region)
	case err != nil:
		return findings.ExitFailed, err
	case c.clean:
		return findings.ExitCode(nil, firstaccount.Clean(ctx, c.Options))
	case c.plan:
		return findings.ExitCode(nil, firstaccount.Plan(ctx, c.Options, out))
	case !c.yes:
		if err := firstaccount.Plan(ctx, c.Options, progress); err != nil {
			return findings.ExitFailed, err
		}
		return findings.ExitFailed, errors.New("nothing was made: run it again with --yes")
	}
	report, err := firstaccount.Run(ctx, c.Options)
	switch {
	case len(report.Findings) == 0: // no check could be made, and the error says why
	case c.output == "json":
		err = errors.Join(err, findings.JSON(out, report))
	default:
		err = errors.Join(err, report.Text(out))
	}
	return findings.ExitCode(report.Findings, err)
}
