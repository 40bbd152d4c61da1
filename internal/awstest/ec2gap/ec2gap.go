// Package ec2gap makes up for what moto lacks of EC2, as hooks of an awstest.Proxy in front of it:
//
//   - CreateFleet takes InstanceRequirements, and several subnets; moto wants one
//     instance type and takes the first override alone.
//   - CreateFleet refuses more than four InstanceRequirements, and a call that
//     does not tag instances, volumes and network interfaces.
//   - CreateFleet refuses two tag specifications of one resource type, and subnets of
//     one zone. It refuses to launch from a template whose root volume is smaller than
//     that of the image or is too small for its IOPS or throughput, whose user data is
//     over 16 KB, or with tags that the instance metadata cannot have.
//   - CreateFleet of type instant gives errors of offerings without capacity, as
//     a test sets it; moto has capacity of everything.
//   - CreateFleet can refuse the call if no type meets its requirements, as accounts
//     have seen, in place of an error in the answer.
//   - Client tokens of CreateFleet and CreateLaunchTemplateVersion are remembered;
//     moto makes everything twice.
//   - Instances of a fleet have what their launch template says: image, user data
//     and tags.
//   - DeleteLaunchTemplateVersions, which moto does not have.
//   - CreateLaunchTemplate tags the template, and not the instances.
//   - Images can be deprecated. EC2 then shows them only to their owner, and to
//     others who ask for deprecated ones.
//   - Instances can end while they start, for a reason that only DescribeInstances
//     tells, as with a key that the launch may not use.
//   - Instances of a fleet show the instance profile of their launch template.
//   - DescribeInstances refuses pages of a size that EC2 does not have and more than
//     200 values of filters, and DescribeInstanceStatus more than 100 ids. The pages
//     of DescribeInstances can be shorter than was asked for, as EC2's are at times.
//   - Only types that can be are launched for hibernation, on an encrypted root volume with room for their memory. StopInstances hibernates only
//     instances that were launched for it, two minutes before.
//   - Instances can be hidden for a while, as EC2's eventual consistency does, and
//     impaired.
package ec2gap

import (
	"cmp"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Limit is how many instances of some offerings may live at once. An empty field
// is any. Every limit that matches an offering holds for it.
type Limit struct {
	Types string // a pattern, such as c6i.*
	Zone  string
	Usage lifecycle.UsageClass
	Most  int
	// Code is what EC2 says beyond it; empty: InsufficientInstanceCapacity.
	Code string
}

func (l Limit) matches(o offering) bool {
	return (l.Types == "" || catalogue.Match(l.Types, o.Name)) && (l.Zone == "" || l.Zone == o.zone) &&
		(l.Usage == "" || l.Usage == o.usage)
}

func (l Limit) code() string { return cmp.Or(l.Code, "InsufficientInstanceCapacity") }

// EC2 is what a test may change of it.
type EC2 struct {
	launching sync.Mutex // held by a whole CreateFleet: calls with one token are one after the other

	mu        sync.Mutex
	limits    []Limit
	tokens    map[string]remembered
	deleted   map[string]map[string]bool // versions, by template
	unmatched bool                       // a call whose requirements no type meets is answered
	hiding    bool
	page      int // instances of a page at most; 0: as many as were asked for
	hidden    map[string]bool
	profiles  map[string]string // instance profiles, by instance
	impaired  map[string]bool
	aged      map[string]bool // images that are deprecated
	dying     *ec2Error       // why instances that are launched end at once
	dead      map[string]ec2Error
	ended     map[string]bool // by TerminateInstances
	// startShort: there is no capacity to start a stopped instance.
	startShort  bool
	hibernation hibernation
	roots       rootTasks
	denied      map[string]string     // the action that is missing, by operation
	templates   map[string]url.Values // tags, by launch template
}

// Install puts the hooks into a proxy in front of moto.
func Install(p *awstest.Proxy) *EC2 {
	e := &EC2{
		tokens: map[string]remembered{}, deleted: map[string]map[string]bool{}, hidden: map[string]bool{}, profiles: map[string]string{}, impaired: map[string]bool{}, aged: map[string]bool{}, dead: map[string]ec2Error{}, ended: map[string]bool{}, denied: map[string]string{}, templates: map[string]url.Values{},
		hibernation: hibernation{since: map[string]time.Time{}, asleep: map[string]bool{}, after: notReady},
	}
	for operation, hook := range map[string]awstest.Hook{
		"CreateFleet":                    e.permitted(e.createFleet),
		"RunInstances":                   e.permitted(carriedOut),
		"TerminateInstances":             e.permitted(e.terminate),
		"StartInstances":                 e.start,
		"StopInstances":                  e.stop,
		"CreateReplaceRootVolumeTask":    e.createRootTask,
		"DescribeReplaceRootVolumeTasks": e.describeRootTasks,
		"CreateLaunchTemplate":           e.createLaunchTemplate,
		"DescribeLaunchTemplates":        e.describeTemplates,
		"CreateLaunchTemplateVersion":    e.createVersion,
		"DeleteLaunchTemplateVersions":   e.deleteVersions,
		"DescribeLaunchTemplateVersions": e.describeVersions,
		"DescribeInstances":              e.describeInstances,
		"DescribeInstanceStatus":         e.describeStatus,
		"DescribeImages":                 e.describeImages,
	} {
		p.Handle("ec2", operation, hook)
	}
	return e
}

// Deny has EC2 refuse an operation as a policy does that does not allow it, with DryRun and without.
func (e *EC2) Deny(operation string) { e.DenyFor(operation, "ec2:"+operation) }

// DenyFor has EC2 refuse an operation since another action is not allowed, such as iam:PassRole.
func (e *EC2) DenyFor(operation, action string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.denied[operation] = action
}

// permitted answers a call that is denied, and a call with DryRun that would be made: moto knows neither for a fleet. With DryRun nothing is
// made, and the client token is not used up.
func (e *EC2) permitted(next awstest.Hook) awstest.Hook {
	return func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		form, ok := formOf(w, r)
		if !ok {
			return
		}
		e.mu.Lock()
		denied := e.denied[form.Get("Action")]
		e.mu.Unlock()
		switch {
		case denied != "":
			awstest.Fail(w, r, http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation. User: "+
				"arn:aws:sts::123456789012:assumed-role/controld/i-0ccccccccccccccc3 is not authorized to perform: "+denied+
				" because no identity-based policy allows the "+denied+" action. Encoded authorization failure message: 4rM7")
		case form.Get("DryRun") == "true":
			if err := checkDry(form); err != nil {
				awstest.Fail(w, r, http.StatusBadRequest, err.code, err.message)
				return
			}
			awstest.Fail(w, r, http.StatusPreconditionFailed, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
		default:
			next(w, r, forward)
		}
	}
}

// checkDry is what EC2 refuses of a call of a caller with the policies of docs/iam.
func checkDry(form url.Values) *ec2Error {
	switch form.Get("Action") {
	case "CreateFleet":
		return cmp.Or(checkTags(form), checkForm(form), checkRequirements(form))
	case "RunInstances":
		return checkForm(form)
	}
	return nil
}

// carriedOut is a call that moto answers.
func carriedOut(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	forward(r).Write(w)
}

// SetLimits replaces all limits.
func (e *EC2) SetLimits(limits ...Limit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.limits = limits
}

// AnswerUnmatched has EC2 answer the calls whose requirements no type meets with UnfulfillableCapacity in their Errors. Without it such a call is
// refused as a whole, as in runs-on/runs-on#464. AWS documents neither.
func (e *EC2) AnswerUnmatched() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unmatched = true
}

// ShortPages has DescribeInstances answer with pages of at most so many reservations, however many were asked for, as EC2 may.
func (e *EC2) ShortPages(most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.page = most
}

// HideNew hides instances that are launched from now on from DescribeInstances, until Show.
func (e *EC2) HideNew() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hiding = true
}

// Show ends HideNew, and shows what it hid.
func (e *EC2) Show() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hiding = false
	clear(e.hidden)
}

// Impair lets EC2's own checks of an instance fail.
func (e *EC2) Impair(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.impaired[id] = true
}

// Deprecate lets an image of another account be deprecated.
func (e *EC2) Deprecate(image string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.aged[image] = true
}

// EndNew lets instances that are launched from now on end while they start, with the reason.
func (e *EC2) EndNew(code, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dying = &ec2Error{code, message}
}

// remembered is the call that a client token stands for.
type remembered struct {
	form   string
	answer *awstest.Answer
}

// once carries a call out if its token is new, and else answers as the first time, if it is the same call.
func (e *EC2) once(w http.ResponseWriter, r *http.Request, carryOut func() *awstest.Answer) {
	form, ok := formOf(w, r)
	if !ok {
		return
	}
	key, parameters := form.Get("Action")+" "+form.Get("ClientToken"), form.Encode()
	e.mu.Lock()
	known, ok := e.tokens[key]
	e.mu.Unlock()
	switch {
	case form.Get("ClientToken") == "":
		carryOut().Write(w)
	case ok && known.form != parameters:
		awstest.Fail(w, r, http.StatusBadRequest, "IdempotentParameterMismatch",
			"The request uses the same client token as a previous, but non-identical request.")
	case ok:
		known.answer.Write(w)
	default:
		answer := carryOut()
		if answer.Status == http.StatusOK {
			e.mu.Lock()
			e.tokens[key] = remembered{parameters, answer}
			e.mu.Unlock()
		}
		answer.Write(w)
	}
}
