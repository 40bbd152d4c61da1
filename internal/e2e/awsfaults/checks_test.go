package awsfaults_test

import (
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// wantHosts: the requests have so many hosts between them, each its own, and
// that is all there is.
func (w *world) wantHosts(when string, n int, provisions ...*fleet.Provision) {
	w.t.Helper()
	owner := map[string]string{}
	for _, p := range provisions {
		q := p.Request()
		for _, t := range q.Taken {
			if other, ok := owner[t.HostKey]; ok {
				w.t.Errorf("%s: host %s was given to %s and to %s", when, t.InstanceID, other, q.RequestID)
			}
			owner[t.HostKey] = q.RequestID
		}
		if len(p.Instances()) != q.Spec.Count {
			w.t.Errorf("%s: request %s has %d hosts, want %d", when, q.RequestID, len(p.Instances()), q.Spec.Count)
		}
	}
	if len(owner) != n {
		w.t.Errorf("%s: %d hosts were given, want %d", when, len(owner), n)
	}
	serving := map[string]string{}
	for _, r := range w.records() {
		if r.State == lifecycle.StateRunning {
			serving[r.HostKey] = r.RequestID
		}
	}
	if diff := cmp.Diff(owner, serving); diff != "" {
		w.t.Errorf("%s: what the requests have and what the records say (-requests +records):\n%s", when, diff)
	}
	w.wantAgreement(when)
}

func (w *world) wantPooled(when string, n int) {
	w.t.Helper()
	pooled := 0
	for _, r := range w.records() {
		if r.Pooled() {
			pooled++
		}
	}
	if pooled != n {
		w.t.Errorf("%s: %d hosts are pooled, want %d: %+v", when, pooled, n, w.records())
	}
	w.wantAgreement(when)
}

// wantAgreement: the machines that live are those that have a live record.
func (w *world) wantAgreement(when string) {
	w.t.Helper()
	var live []string
	for _, r := range w.records() {
		if r.State != lifecycle.StateTerminated {
			live = append(live, r.InstanceID)
		}
	}
	slices.Sort(live)
	if diff := cmp.Diff(live, living(w.instances())); diff != "" {
		w.t.Errorf("%s: records and machines that live (-records +machines):\n%s", when, diff)
	}
}

// wantNothing: no machine, no registration, and nothing that is still due.
func (w *world) wantNothing(when string) {
	w.t.Helper()
	w.wantAgreement(when)
	if ids := living(w.instances()); len(ids) > 0 {
		w.t.Errorf("%s: machines %v live", when, ids)
	}
	for _, r := range w.records() {
		if r.State != lifecycle.StateTerminated || !r.DueAt.IsZero() {
			w.t.Errorf("%s: host %s is %s and due at %v", when, r.InstanceID, r.Condition(), r.DueAt)
		}
	}
	if page, _ := w.github.Runners(w.t.Context(), repository, lifecycle.PageOf{}); len(page.Items) > 0 {
		w.t.Errorf("%s: registrations %+v are left", when, page.Items)
	}
}

// wantAccounts: every request is settled and due no more, and what was launched
// is what was needed, each launch with a token of its own.
func (w *world) wantAccounts(runs ...string) {
	w.t.Helper()
	requests := w.requests(runs...)
	if len(requests) != len(runs) {
		w.t.Errorf("%d requests of %d runs", len(requests), len(runs))
	}
	for _, q := range requests {
		if !q.Settled() || q.Launch != nil || !q.DueAt.IsZero() {
			w.t.Errorf("request %s: outcome %q, launch %+v, due at %v", q.RequestID, q.Outcome, q.Launch, q.DueAt)
		}
	}
	if n := len(w.instances()); n != launched {
		w.t.Errorf("%d machines were launched in all, want %d", n, launched)
	}
	if n := len(w.records()); n != launched {
		w.t.Errorf("%d hosts were recorded in all, want %d", n, launched)
	}
	w.wantTokens()
}

// wantTokens: a launch had one token, whatever became of its calls, and at most as many
// machines as were ordered with it.
func (w *world) wantTokens() {
	w.t.Helper()
	tokens, ordered, made := map[string]string{}, map[string]string{}, map[string]int{}
	for _, c := range w.proxy.Calls() {
		if c.Operation != "CreateFleet" {
			continue
		}
		form, err := url.ParseQuery(string(c.Body))
		check(w.t, err)
		tags := map[string]string{}
		for name, value := range form {
			if key, ok := strings.CutSuffix(name, ".Key"); ok {
				tags[value[0]] = form.Get(key + ".Value")
			}
		}
		launch := tags[ec2.TagRequestID] + "/" + tags[ec2.TagLaunch]
		token, count := form.Get("ClientToken"), form.Get("TargetCapacitySpecification.TotalTargetCapacity")
		if token == "" || tags[ec2.TagRequestID] == "" {
			w.t.Fatalf("CreateFleet without a token or a request: %s", c.Body)
		}
		if tokens[launch] != "" && (tokens[launch] != token || ordered[launch] != count) {
			w.t.Errorf("launch %s was repeated with token %s for %s machines, and was token %s for %s", launch, token, count, tokens[launch], ordered[launch])
		}
		tokens[launch], ordered[launch] = token, count
	}
	for _, i := range w.instances() {
		tags := map[string]string{}
		for _, tag := range i.Tags {
			tags[*tag.Key] = *tag.Value
		}
		made[tags[ec2.TagRequestID]+"/"+tags[ec2.TagLaunch]]++
	}
	if diff := cmp.Diff(map[string]int{"request-101/1": 2, warmLaunch(made): 1}, made); diff != "" {
		w.t.Errorf("machines by launch (-want +got):\n%s", diff)
	}
}

// warmLaunch is the one launch of the two warm requests, whichever came late.
func warmLaunch(made map[string]int) string {
	if made["request-102/1"] > 0 {
		return "request-102/1"
	}
	return "request-103/1"
}
