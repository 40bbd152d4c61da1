package ec2gap

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/remuda-ci/remuda/internal/awstest"
)

// hibernation is what moto leaves out of it: it stops every instance, whatever that was launched for.
type hibernation struct {
	// since is when each of the instances that were launched for it was launched, and asleep are those that were hibernated and not started since.
	since  map[string]time.Time
	asleep map[string]bool
	// after is how long after its launch an instance is ready to be hibernated.
	after time.Duration
	// refusal is why no instance is hibernated; nil: some are.
	refusal *ec2Error
}

// notReady is how long EC2 takes, about ("Hibernate your Amazon EC2 instance", Troubleshooting).
const notReady = 2 * time.Minute

// HibernateAfter sets how long after its launch an instance is ready to be hibernated, in place of two minutes.
func (e *EC2) HibernateAfter(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hibernation.after = d
}

// RefuseHibernation has EC2 hibernate no instance, and say so by a code.
func (e *EC2) RefuseHibernation(code string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hibernation.refusal = &ec2Error{code, "no hibernation"}
}

// Hibernated reports whether an instance was hibernated and not started since.
func (e *EC2) Hibernated(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hibernation.asleep[id]
}

// refuses is why EC2 does not hibernate an instance; nil: it does. The sentences are of aws-solutions/instance-scheduler-on-aws#510 and
// of what others have seen.
func (h hibernation) refuses(id string) *ec2Error {
	since, can := h.since[id]
	switch {
	case h.refusal != nil:
		return h.refusal
	case !can:
		return &ec2Error{"UnsupportedHibernationConfiguration", "The instance can't be hibernated because it was not configured at launch for hibernation: " + id}
	case time.Since(since) < h.after:
		return &ec2Error{"UnsupportedOperation", "Instance is not ready to hibernate yet, retry in a few minutes"}
	}
	return nil
}

// hibernate answers a stop that asks for it, under the lock.
func (e *EC2) hibernate(w http.ResponseWriter, r *http.Request, form url.Values, forward forward) {
	for _, id := range instancesOf(form) {
		if why := e.hibernation.refuses(id); why != nil {
			awstest.Fail(w, r, http.StatusBadRequest, why.code, why.message)
			return
		}
	}
	for _, id := range instancesOf(form) {
		e.hibernation.asleep[id] = true
	}
	forward(r).Write(w)
}

// hibernates reports whether a launch template launches instances that can be hibernated.
func hibernates(data node) bool { return data.at("hibernationOptions", "configured").Text == "true" }

// checkHibernation refuses a launch for hibernation of a type that has none, and on a root volume that is not encrypted or has no room for the memory
// ("Prerequisites for EC2 instance hibernation"). The sentences are not EC2's own.
func (f *fleet) checkHibernation(data node, o offering) *ec2Error {
	if !hibernates(data) {
		return nil
	}
	refused := func(why string) *ec2Error { return &ec2Error{"UnsupportedHibernationConfiguration", why} }
	can, failure := canHibernate(f.r, f.forward)
	switch root := data.at("blockDeviceMappingSet", "item", "ebs"); {
	case failure != nil:
		return failure
	case !can[o.Name]:
		return refused("The instance type " + o.Name + " does not support hibernation")
	case root.at("encrypted").Text != "true":
		return refused("The root volume must be encrypted")
	case o.MemoryMiB > 150<<10 || o.MemoryMiB > root.at("volumeSize").integer()<<10:
		return refused(fmt.Sprintf("The root volume has no room for %d MiB of memory", o.MemoryMiB))
	case o.usage != "on-demand":
		return refused("The interruption behavior of a spot instance that is to hibernate must be hibernate")
	}
	return nil
}

// canHibernate are the types that EC2 hibernates, as moto knows them.
func canHibernate(r *http.Request, forward forward) (map[string]bool, *ec2Error) {
	answer, failure := askTree(r, forward, "DescribeInstanceTypes", url.Values{"Filter.1.Name": {"hibernation-supported"}, "Filter.1.Value.1": {"true"}})
	can := map[string]bool{}
	for _, t := range answer.at("instanceTypeSet").Nodes {
		can[t.at("instanceType").Text] = true
	}
	return can, failure
}
