package ec2gap

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/remuda-ci/remuda/internal/awstest"
)

// terminate remembers which instances are ended, for start.
func (e *EC2) terminate(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	form, ok := formOf(w, r)
	if !ok {
		return
	}
	e.mu.Lock()
	for _, id := range instancesOf(form) {
		e.ended[id] = true
	}
	e.mu.Unlock()
	forward(r).Write(w)
}

// stop refuses to stop an instance that has ended, which moto makes a stopped one again.
func (e *EC2) stop(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	e.ofLiving(w, r, "stopped", func(form url.Values) {
		if form.Get("Hibernate") == "true" {
			e.hibernate(w, r, form, forward)
			return
		}
		forward(r).Write(w)
	})
}

// start refuses to start an instance that has ended, which moto has run again; and, while StartShort is set, every other one, for want of capacity.
func (e *EC2) start(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	e.ofLiving(w, r, "started", func(form url.Values) {
		if e.startShort {
			awstest.Fail(w, r, http.StatusInternalServerError, "InsufficientInstanceCapacity", "Insufficient capacity.")
			return
		}
		for _, id := range instancesOf(form) {
			delete(e.hibernation.asleep, id)
		}
		forward(r).Write(w)
	})
}

// ofLiving answers a call about instances, unless one of them has ended.
func (e *EC2) ofLiving(w http.ResponseWriter, r *http.Request, what string, answer func(url.Values)) {
	form, ok := formOf(w, r)
	if !ok {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range instancesOf(form) {
		if e.ended[id] {
			awstest.Fail(w, r, http.StatusBadRequest, codeWrongState, "This instance '"+id+"' is not in a state from which it can be "+what+".")
			return
		}
	}
	answer(form)
}

// StartShort has EC2 lack the capacity to start a stopped instance.
func (e *EC2) StartShort(short bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.startShort = short
}

func instancesOf(form url.Values) (ids []string) {
	for name, values := range form {
		if strings.HasPrefix(name, "InstanceId.") {
			ids = append(ids, values...)
		}
	}
	return ids
}
