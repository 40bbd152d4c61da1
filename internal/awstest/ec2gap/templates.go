package ec2gap

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/remuda-ci/remuda/internal/awstest"
)

// createLaunchTemplate tags the template by a call of its own: moto would put
// the tags into what the template says of instances, and does not show those of the call.
func (e *EC2) createLaunchTemplate(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	form, ok := formOf(w, r)
	if !ok {
		return
	}
	tags := url.Values{}
	for _, spec := range each(form, "TagSpecification") {
		for key, values := range spec {
			if strings.HasPrefix(key, "Tag.") {
				tags[key] = values
			}
		}
	}
	maps.DeleteFunc(form, func(key string, _ []string) bool { return strings.HasPrefix(key, "TagSpecification.") })
	answer := forward(awstest.WithForm(r, form))
	if root, err := read(answer); err == nil && answer.Status == http.StatusOK && len(tags) > 0 {
		id := root.at("launchTemplate", "launchTemplateId").Text
		tags.Set("ResourceId.1", id)
		if _, failure := askTree(r, forward, "CreateTags", tags); failure != nil {
			awstest.Fail(w, r, http.StatusBadRequest, failure.code, failure.message)
			return
		}
		e.mu.Lock()
		e.templates[id] = tags
		e.mu.Unlock()
	}
	answer.Write(w)
}

func (e *EC2) describeTemplates(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	changed(forward(r), "launchTemplates", func(set *node) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for i := range set.Nodes {
			t := &set.Nodes[i]
			tags := element("tagSet")
			for _, tag := range each(e.templates[t.at("launchTemplateId").Text], "Tag") {
				tags.Nodes = append(tags.Nodes, element("item", text("key", tag.Get("Key")), text("value", tag.Get("Value"))))
			}
			t.drop(func(n node) bool { return n.XMLName.Local == "tagSet" })
			t.Nodes = append(t.Nodes, tags)
		}
	}).Write(w)
}

func (e *EC2) createVersion(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	e.launching.Lock()
	defer e.launching.Unlock()
	e.once(w, r, func() *awstest.Answer { return forward(r) })
}

// deleteVersions only notes what is deleted: describeVersions leaves it out.
// The default version cannot be deleted.
func (e *EC2) deleteVersions(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	form, ok := formOf(w, r)
	if !ok {
		return
	}
	name := form.Get("LaunchTemplateName")
	templates, failure := askTree(r, forward, "DescribeLaunchTemplates", url.Values{"LaunchTemplateName.1": {name}})
	if failure != nil {
		awstest.Fail(w, r, http.StatusBadRequest, failure.code, failure.message)
		return
	}
	current := templates.at("launchTemplates", "item", "defaultVersionNumber").Text
	done, refused := element("successfullyDeletedLaunchTemplateVersionSet"), element("unsuccessfullyDeletedLaunchTemplateVersionSet")
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.deleted[name] == nil {
		e.deleted[name] = map[string]bool{}
	}
	for _, version := range words(form, "LaunchTemplateVersion") {
		item := element("item", text("launchTemplateName", name), text("versionNumber", version))
		if version == current {
			item.Nodes = append(item.Nodes, element("responseError", text("code", "unexpectedError"),
				text("message", fmt.Sprintf("version %s is the default", version))))
			refused.Nodes = append(refused.Nodes, item)
			continue
		}
		e.deleted[name][version] = true
		done.Nodes = append(done.Nodes, item)
	}
	element("DeleteLaunchTemplateVersionsResponse", done, refused).answer().Write(w)
}

func (e *EC2) describeVersions(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	changed(forward(r), "launchTemplateVersionSet", func(set *node) {
		e.mu.Lock()
		defer e.mu.Unlock()
		set.drop(func(v node) bool { return e.deleted[v.at("launchTemplateName").Text][v.at("versionNumber").Text] })
	}).Write(w)
}
