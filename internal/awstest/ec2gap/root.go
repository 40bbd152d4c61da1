package ec2gap

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/awstest"
)

// The replacement of root volumes, which moto lacks, after the API reference of EC2 (CreateReplaceRootVolumeTask, DescribeReplaceRootVolumeTasks,
// ReplaceRootVolumeTask) and "Replace the root volume for an Amazon EC2 instance without stopping it" in its user guide. Where these say nothing, as on the code of a
// second task beside one under way, the answers are refusals.

// rootTask is a replacement. It is seen pending once, then in-progress as often as RootTakes says, and then in the state in which it ends.
type rootTask struct {
	id, instance, token, state string
	began, ended               time.Time
	looks                      int
}

func (t rootTask) over() bool { return !t.ended.IsZero() }

// rootTasks are the replacements, and how those that follow go.
type rootTasks struct {
	all      []*rootTask
	takes    int    // how often a task is seen in-progress
	endsAs   string // succeeded, unless it is set
	replaced func(instance string)
}

// RootTakes has each later replacement be seen in progress so often before it is over.
func (e *EC2) RootTakes(looks int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.roots.takes = looks
}

// RootEndsAs has later replacements end in a state, such as failed or failed-detached.
func (e *EC2) RootEndsAs(state string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.roots.endsAs = state
}

// OnRootReplaced calls a function with the id of each instance that has a new root volume, before any caller sees that.
func (e *EC2) OnRootReplaced(f func(instance string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.roots.replaced = f
}

// createRootTask begins a replacement, or answers with the one that the token has begun. It refuses an instance that is not running.
func (e *EC2) createRootTask(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	form, ok := formOf(w, r)
	if !ok {
		return
	}
	id, token := form.Get("InstanceId"), form.Get("ClientToken")
	refuse := func(code, message string) { awstest.Fail(w, r, http.StatusBadRequest, code, message) }
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.IndexFunc(e.roots.all, func(t *rootTask) bool { return token != "" && t.token == token }); i >= 0 {
		if t := e.roots.all[i]; t.instance == id {
			t.write(w, "CreateReplaceRootVolumeTaskResponse")
		} else {
			refuse("IdempotentParameterMismatch", "The client token you have provided is associated with a resource of different parameters.")
		}
		return
	}
	described, failure := askTree(r, forward, "DescribeInstances", url.Values{"InstanceId.1": {id}})
	if failure != nil {
		refuse(failure.code, failure.message)
		return
	}
	state := described.at("reservationSet", "item", "instancesSet", "item", "instanceState", "name").Text
	if state != "running" || e.ended[id] {
		refuse(codeWrongState, "The instance '"+id+"' is not in the 'running' state.")
		return
	}
	if slices.ContainsFunc(e.roots.all, func(t *rootTask) bool { return t.instance == id && !t.over() }) {
		refuse(codeWrongState, "The root volume of instance '"+id+"' is being replaced.")
		return
	}
	t := &rootTask{id: fmt.Sprintf("replacevol-%017x", len(e.roots.all)+1), instance: id, token: token, state: "pending", began: time.Now()}
	e.roots.all = append(e.roots.all, t)
	t.write(w, "CreateReplaceRootVolumeTaskResponse")
}

const codeWrongState = "IncorrectInstanceState"

// rootTasksPage is how many tasks a page has. EC2 does not document how many there are without MaxResults.
const rootTasksPage = 1

// describeRootTasks lists replacements by the ids of instances or of tasks. Each look brings those that are under way further.
func (e *EC2) describeRootTasks(w http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
	form, ok := formOf(w, r)
	if !ok {
		return
	}
	var instances []string
	for _, f := range each(form, "Filter") {
		if f.Get("Name") != "instance-id" {
			awstest.Fail(w, r, http.StatusBadRequest, "InvalidParameterValue", "The filter '"+f.Get("Name")+"' is invalid")
			return
		}
		instances = words(f, "Value")
	}
	if err := checkListing(form); err != nil {
		awstest.Fail(w, r, http.StatusBadRequest, err.code, err.message)
		return
	}
	ids := words(form, "ReplaceRootVolumeTaskId")
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []*rootTask
	for _, t := range e.roots.all {
		if len(instances) > 0 && !slices.Contains(instances, t.instance) || len(ids) > 0 && !slices.Contains(ids, t.id) {
			continue
		}
		found = append(found, t)
	}
	from := number(form, "NextToken", 0)
	to := min(from+rootTasksPage, len(found))
	for _, t := range found[from:to] {
		e.advance(t)
	}
	next := ""
	if to < len(found) {
		next = strconv.Itoa(to)
	}
	writeRootTasks(w, found[from:to], next)
}

// advance brings a task one look further.
func (e *EC2) advance(t *rootTask) {
	if t.over() {
		return
	}
	switch t.looks++; {
	case t.looks == 1:
		t.state = "pending"
	case t.looks <= 1+e.roots.takes:
		t.state = "in-progress"
	default:
		t.state, t.ended = "succeeded", time.Now()
		if e.roots.endsAs != "" {
			t.state = e.roots.endsAs
		}
		if t.state == "succeeded" && e.roots.replaced != nil {
			e.roots.replaced(t.instance)
		}
	}
}

// fields are those of a task in an answer.
func (t *rootTask) fields() string {
	text := fmt.Sprintf("<replaceRootVolumeTaskId>%s</replaceRootVolumeTaskId><instanceId>%s</instanceId><taskState>%s</taskState><startTime>%s</startTime>"+
		"<deleteReplacedRootVolume>true</deleteReplacedRootVolume>", t.id, t.instance, t.state, t.began.UTC().Format(time.RFC3339))
	if t.over() {
		text += "<completeTime>" + t.ended.UTC().Format(time.RFC3339) + "</completeTime>"
	}
	return text
}

func (t *rootTask) write(w http.ResponseWriter, answer string) {
	writeXML(w, answer, "<replaceRootVolumeTask>"+t.fields()+"</replaceRootVolumeTask>")
}

func writeRootTasks(w http.ResponseWriter, tasks []*rootTask, next string) {
	var items string
	for _, t := range tasks {
		items += "<item>" + t.fields() + "</item>"
	}
	writeXML(w, "DescribeReplaceRootVolumeTasksResponse", "<replaceRootVolumeTaskSet>"+items+"</replaceRootVolumeTaskSet><nextToken>"+next+"</nextToken>")
}

func writeXML(w http.ResponseWriter, answer, content string) {
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><%s xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>00000000-0000-0000-0000-000000000000</requestId>%s</%s>`,
		answer, content, answer) // a client that has gone misses it
}
