package ec2

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// EC2's answer to requirements that no instance type meets in the zones of a call, as accounts have seen it: the call itself is refused with
// "InvalidParameterValue: We couldn't find any instance pools that match your instance requirements. Change your instance requirements, and try
// again." (runs-on/runs-on#464, #314 and #66). That is a shortage: other zones, or on-demand in place of spot, may have what is asked for.
// The code is also that of calls that stay wrong, such as one with overlapping requirements (runs-on/runs-on#476), so here, and only here, the
// sentence decides too. If EC2 words it otherwise, such a launch is refused as before.
const (
	codeNoPools     = "InvalidParameterValue"
	sentenceNoPools = "find any instance pools"
)

func isNoPools(code, message string) bool {
	return code == codeNoPools && strings.Contains(message, sentenceNoPools)
}

// NoPools reports whether EC2 refused a launch since no instance type meets its requirements in its zones.
func NoPools(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && isNoPools(api.ErrorCode(), api.ErrorMessage())
}

// noPools says what a call found nothing of, and what to change.
func noPools(o lifecycle.LaunchOrder, names, zones []string) string {
	in := ""
	if len(zones) > 0 {
		in = " in " + strings.Join(zones, ", ")
	}
	return fmt.Sprintf("EC2 sells no %s machines of %s%s (%s): allow other types or sizes, which the architectures of the images of pool %s have, "+
		"or add subnets in other zones to the pool", o.UsageClass, named(o, names), in, codeNoPools, o.Pool)
}

// zonesOf a call, in its order.
func zonesOf(in *service.CreateFleetInput, places []place) []string {
	var zones []string
	for _, config := range in.LaunchTemplateConfigs {
		for _, override := range config.Overrides {
			subnet := sdk.ToString(override.SubnetId)
			if i := slices.IndexFunc(places, func(p place) bool { return p.subnet == subnet }); i >= 0 {
				zones = append(zones, places[i].zone)
			}
		}
	}
	return distinct(zones)
}
