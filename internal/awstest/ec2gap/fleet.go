package ec2gap

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// createFleet answers for a fleet of type instant.
func (e *EC2) createFleet(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	e.launching.Lock()
	defer e.launching.Unlock()
	e.once(w, r, func() *awstest.Answer {
		form, err := awstest.Form(r)
		if err == nil && form.Get("Type") != "instant" {
			return forward(r)
		}
		f := fleet{e: e, r: r, forward: forward, form: form}
		answer, failure := f.launch()
		if failure != nil {
			return awstest.Failure(r, http.StatusBadRequest, failure.code, failure.message)
		}
		return answer
	})
}

// fleet is one call.
type fleet struct {
	e       *EC2
	r       *http.Request
	forward forward
	form    url.Values

	errors []node
	sets   []node
}

func (f *fleet) launch() (*awstest.Answer, *ec2Error) {
	usage := lifecycle.UsageOnDemand
	if f.form.Get("TargetCapacitySpecification.DefaultTargetCapacityType") == "spot" {
		usage = lifecycle.UsageSpot
	}
	options, failure := offerings(f.r, f.forward, f.form, usage)
	// An instant fleet reports what is wrong with a launch in its answer, except what
	// is wrong with the template itself.
	switch {
	case failure != nil && (failure.code == "InvalidAMIID.NotFound" || failure.code == "InvalidSubnetID.NotFound"):
		f.fail(offering{usage: usage}, *failure)
	case failure != nil:
		return nil, failure
	case len(options) == 0 && !f.e.answersUnmatched():
		return nil, &ec2Error{"InvalidParameterValue", "We couldn't find any instance pools that match your instance requirements. " +
			"Change your instance requirements, and try again."}
	case len(options) == 0:
		f.fail(offering{usage: usage}, ec2Error{"UnfulfillableCapacity", "No instance types match your instance requirements"})
	default:
		if failure := f.place(options); failure != nil {
			return nil, failure
		}
	}
	return element("CreateFleetResponse",
		text("requestId", "00000000-0000-0000-0000-000000000000"),
		text("fleetId", "fleet-"+f.form.Get("ClientToken")),
		element("errorSet", f.errors...),
		element("fleetInstanceSet", f.sets...),
	).answer(), nil
}

func (e *EC2) answersUnmatched() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unmatched
}

// place launches what there is room for: of the first type that has any, in the
// zone with the fewest of this fleet.
func (f *fleet) place(options []offering) *ec2Error {
	live, failure := living(f.r, f.forward)
	if failure != nil {
		return failure
	}
	planned := map[int]int{}
	refused := map[int]Limit{}
	for range number(f.form, "TargetCapacitySpecification.TotalTargetCapacity", 0) {
		best := -1
		for i, o := range options {
			if best >= 0 && o.Name != options[best].Name {
				break
			}
			if limit, full := f.e.full(o, live); full {
				refused[i] = limit
			} else if best < 0 || planned[i] < planned[best] {
				best = i
			}
		}
		if best < 0 {
			break
		}
		planned[best]++
		live = append(live, options[best])
	}
	for _, i := range slices.Sorted(maps.Keys(refused)) {
		f.fail(options[i], ec2Error{refused[i].code(), fmt.Sprintf("There is no more of %s in %s.", options[i].Name, options[i].zone)})
	}
	for _, i := range slices.Sorted(maps.Keys(planned)) {
		f.run(options[i], planned[i])
	}
	return nil
}

// full says by which limit an offering has no room for one more.
func (e *EC2) full(o offering, live []offering) (Limit, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.limits {
		used := 0
		for _, other := range live {
			if l.matches(other) {
				used++
			}
		}
		if l.matches(o) && used >= l.Most {
			return l, true
		}
	}
	return Limit{}, false
}

// run launches instances of one offering, from the fleet's launch template.
func (f *fleet) run(o offering, n int) {
	data, failure := f.template(o)
	if failure == nil {
		failure = cmp.Or(f.refusal(data), f.checkHibernation(data, o))
	}
	if failure != nil {
		f.fail(o, *failure)
		return
	}
	with := url.Values{
		"InstanceType": {o.Name}, "SubnetId": {o.subnet}, "MinCount": {strconv.Itoa(n)}, "MaxCount": {strconv.Itoa(n)},
		"LaunchTemplate.LaunchTemplateName": {o.template.Get("LaunchTemplateName")}, "LaunchTemplate.Version": {o.template.Get("Version")},
	}
	if o.usage == lifecycle.UsageSpot {
		with.Set("InstanceMarketOptions.MarketType", "spot")
	}
	kept := 0
	for _, spec := range each(f.form, "TagSpecification") {
		if spec.Get("ResourceType") == "fleet" {
			continue
		}
		kept++
		for key, values := range spec {
			with[fmt.Sprintf("TagSpecification.%d.%s", kept, key)] = values
		}
	}
	launched, failure := askTree(f.r, f.forward, "RunInstances", with)
	if failure != nil {
		f.fail(o, *failure)
		return
	}
	ids, profile := element("instanceIds"), data.at("iamInstanceProfile", "name").Text
	for _, i := range launched.at("instancesSet").Nodes {
		id := i.at("instanceId").Text
		ids.Nodes = append(ids.Nodes, text("item", id))
		f.e.launched(id, profile, hibernates(data))
	}
	f.sets = append(f.sets, element("item", o.used(), text("lifecycle", string(o.usage)), ids, text("instanceType", o.Name)))
}

// template is what a launch template's version says of instances.
func (f *fleet) template(o offering) (node, *ec2Error) {
	answer, failure := askTree(f.r, f.forward, "DescribeLaunchTemplateVersions", url.Values{
		"LaunchTemplateName": {o.template.Get("LaunchTemplateName")}, "LaunchTemplateVersion.1": {o.template.Get("Version")},
	})
	return answer.at("launchTemplateVersionSet", "item", "launchTemplateData"), failure
}

func (e *EC2) launched(id, profile string, hibernates bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if hibernates {
		e.hibernation.since[id] = time.Now()
	}
	e.profiles[id] = profile
	if e.hiding {
		e.hidden[id] = true
	}
	if e.dying != nil {
		e.dead[id] = *e.dying
	}
}

func (f *fleet) fail(o offering, failure ec2Error) {
	f.errors = append(f.errors, element("item",
		o.used(), text("lifecycle", string(o.usage)), text("errorCode", failure.code), text("errorMessage", failure.message),
	))
}

// used is the part of an answer that says what it is about.
func (o offering) used() node {
	overrides := element("overrides")
	if o.Name != "" {
		overrides.Nodes = append(overrides.Nodes, text("instanceType", o.Name))
	}
	if o.subnet != "" {
		overrides.Nodes = append(overrides.Nodes, text("subnetId", o.subnet))
	}
	return element("launchTemplateAndOverrides",
		element("launchTemplateSpecification",
			text("launchTemplateName", o.template.Get("LaunchTemplateName")), text("version", o.template.Get("Version"))),
		overrides)
}
