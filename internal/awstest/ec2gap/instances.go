package ec2gap

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/remuda-ci/remuda/internal/awstest"
)

// drop removes children.
func (n *node) drop(gone func(node) bool) { n.Nodes = slices.DeleteFunc(n.Nodes, gone) }

func (e *EC2) describeInstances(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	form, ok := formOf(w, r)
	if !ok {
		return
	}
	if err := checkListing(form); err != nil {
		awstest.Fail(w, r, http.StatusBadRequest, err.code, err.message)
		return
	}
	e.mu.Lock()
	none, page := len(e.hidden)+len(e.dead)+len(e.profiles) == 0, e.page
	e.mu.Unlock()
	if carried := forward; page > 0 {
		form.Set("MaxResults", strconv.Itoa(page))
		forward = func(*http.Request) *awstest.Answer { return ask(r, carried, "DescribeInstances", form) }
	}
	answer := forward(r)
	if !none {
		answer = changed(answer, "instancesSet", func(set *node) {
			e.mu.Lock()
			defer e.mu.Unlock()
			set.drop(func(i node) bool { return e.hidden[i.at("instanceId").Text] })
			for i := range set.Nodes {
				if why, dead := e.dead[set.Nodes[i].at("instanceId").Text]; dead {
					set.Nodes[i].end(why)
				}
				e.showProfile(&set.Nodes[i])
				e.showHibernation(&set.Nodes[i])
			}
		})
	}
	answer.Write(w)
}

// end makes an instance one that EC2 has ended.
func (n *node) end(why ec2Error) {
	n.change("instanceState", func(s *node) { s.Nodes = []node{text("code", "48"), text("name", "terminated")} })
	n.drop(func(c node) bool { return c.XMLName.Local == "stateReason" })
	n.Nodes = append(n.Nodes, element("stateReason", text("code", why.code), text("message", why.message)))
}

// showProfile shows the instance profile of an instance of a fleet, which moto does not know. An instance that has ended has none: EC2
// takes its network and security groups out of the answer, and is not known to leave the profile in.
func (e *EC2) showProfile(i *node) {
	if i.at("instanceState", "name").Text == "terminated" {
		i.drop(func(n node) bool { return n.XMLName.Local == "iamInstanceProfile" })
		return
	}
	if name := e.profiles[i.at("instanceId").Text]; name != "" && i.at("iamInstanceProfile", "arn").Text == "" {
		i.drop(func(n node) bool { return n.XMLName.Local == "iamInstanceProfile" })
		i.Nodes = append(i.Nodes, element("iamInstanceProfile",
			text("arn", "arn:aws:iam::123456789012:instance-profile/"+name), text("id", "AIPA"+name)))
	}
}

// showHibernation shows whether an instance was launched for hibernation.
func (e *EC2) showHibernation(i *node) {
	if _, can := e.hibernation.since[i.at("instanceId").Text]; can {
		i.drop(func(n node) bool { return n.XMLName.Local == "hibernationOptions" })
		i.Nodes = append(i.Nodes, element("hibernationOptions", text("configured", "true")))
	}
}

// What a listing may ask for (EC2's API reference: "DescribeInstances", "DescribeInstanceStatus" and "Filter"). The service model has none of it.
const (
	leastResults, mostResults = 5, 1000
	mostStatusIDs             = 100
	mostFilterValues          = 200
)

// checkListing refuses a page of a size that there is not, and too many values of the filters.
func checkListing(form url.Values) *ec2Error {
	if asked := form.Get("MaxResults"); asked != "" {
		if n, err := strconv.Atoi(asked); err != nil || n < leastResults || n > mostResults {
			return &ec2Error{"InvalidParameterValue", "Value ( " + asked + " ) for parameter maxResults is invalid. Expecting a value from 5 to 1000."}
		}
	}
	values := 0
	for _, f := range each(form, "Filter") {
		values += len(words(f, "Value"))
	}
	if values > mostFilterValues {
		return &ec2Error{"FilterLimitExceeded", "The maximum number of filter values specified on a single call is 200"}
	}
	return nil
}

func (e *EC2) describeStatus(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	form, ok := formOf(w, r)
	if !ok {
		return
	}
	if len(words(form, "InstanceId")) > mostStatusIDs {
		awstest.Fail(w, r, http.StatusBadRequest, "InvalidParameterValue", "The maximum number of instance ids is 100")
		return
	}
	changed(forward(r), "instanceStatusSet", func(set *node) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for i := range set.Nodes {
			if e.impaired[set.Nodes[i].at("instanceId").Text] {
				set.Nodes[i].change("instanceStatus", func(s *node) { s.Nodes = []node{text("status", "impaired")} })
			}
		}
	}).Write(w)
}

func (e *EC2) describeImages(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	form, ok := formOf(w, r)
	if !ok {
		return
	}
	answer := forward(r)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.aged) > 0 {
		aged := func(i node) bool { return e.aged[i.at("imageId").Text] }
		answer = changed(answer, "imagesSet", func(set *node) {
			if form.Get("IncludeDeprecated") != "true" {
				set.drop(aged)
			}
			for i := range set.Nodes {
				if aged(set.Nodes[i]) {
					set.Nodes[i].Nodes = append(set.Nodes[i].Nodes, text("deprecationTime", "2026-01-01T00:00:00.000Z"))
				}
			}
		})
	}
	answer.Write(w)
}
