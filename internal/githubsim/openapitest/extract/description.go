package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// operations are those that the project or its tests call, as "METHOD path" of the description.
var operations = []string{
	"POST SCOPE/actions/runners/registration-token",
	"POST SCOPE/actions/runners/remove-token",
	"POST SCOPE/actions/runners/generate-jitconfig",
	"GET SCOPE/actions/runners",
	"GET SCOPE/actions/runners/{runner_id}",
	"DELETE SCOPE/actions/runners/{runner_id}",
	"GET SCOPE/actions/runners/{runner_id}/labels",
	"PUT SCOPE/actions/runners/{runner_id}/labels",
	"POST SCOPE/actions/runners/{runner_id}/labels",
	"DELETE SCOPE/actions/runners/{runner_id}/labels",
	"DELETE SCOPE/actions/runners/{runner_id}/labels/{name}",
	"GET SCOPE/installation",
	"GET /orgs/{org}/actions/runner-groups",

	"GET /app",
	"GET /app/installations",
	"POST /app/installations/{installation_id}/access_tokens",
	"GET /app/hook/deliveries",
	"GET /app/hook/deliveries/{delivery_id}",
	"POST /app/hook/deliveries/{delivery_id}/attempts",

	"GET REPO/actions/runs",
	"GET REPO/actions/runs/{run_id}",
	"GET REPO/actions/runs/{run_id}/attempts/{attempt_number}",
	"GET REPO/actions/runs/{run_id}/attempts/{attempt_number}/jobs",
	"GET REPO/actions/runs/{run_id}/jobs",
	"DELETE REPO/actions/runs/{run_id}",
	"POST REPO/actions/runs/{run_id}/cancel",
	"POST REPO/actions/runs/{run_id}/rerun",
	"POST REPO/actions/runs/{run_id}/rerun-failed-jobs",
	"GET REPO/actions/jobs/{job_id}",
	"GET REPO/actions/jobs/{job_id}/logs",
	"GET REPO/actions/runners/downloads",
	"GET REPO/branches/{branch}",
	"GET REPO/compare/{basehead}",
	"POST REPO/git/trees",
	"POST REPO/git/commits",
	"POST REPO/git/refs",
	"DELETE REPO/git/refs/{ref}",
	"POST REPO/check-runs",
	"PATCH REPO/check-runs/{check_run_id}",
	"GET REPO/commits/{ref}/check-runs",
	"GET REPO/releases",
	"GET REPO/releases/latest",
}

// webhooks are the schemas of the deliveries that the stand-in sends.
var webhooks = []string{
	"webhook-workflow-job-queued", "webhook-workflow-job-in-progress", "webhook-workflow-job-completed", "webhook-workflow-job-waiting",
	"webhook-workflow-run-requested", "webhook-workflow-run-in-progress", "webhook-workflow-run-completed",
}

// idle are keys that no validation looks at: they would be most of the file.
var idle = []string{"examples", "example", "externalDocs", "x-github", "x-octokit", "tags", "summary"}

const (
	repo = "/repos/{owner}/{repo}"
	org  = "/orgs/{org}"
)

// wanted are the operations with both scopes put in.
func wanted() []string {
	var out []string
	for _, o := range operations {
		if strings.Contains(o, "SCOPE") {
			out = append(out, strings.Replace(o, "SCOPE", repo, 1), strings.Replace(o, "SCOPE", org, 1))
			continue
		}
		out = append(out, strings.Replace(o, "REPO", repo, 1))
	}
	return out
}

type object = map[string]any

// extractDescription writes the wanted operations with all that they refer to.
func extractDescription(path, source, out string) error {
	var all object
	if err := read(path, &all); err != nil {
		return err
	}
	paths, err := pick(all["paths"].(object))
	if err != nil {
		return err
	}
	if err := correct(paths); err != nil {
		return err
	}
	if err := widen(paths); err != nil {
		return err
	}
	lighten(paths, false)
	components := object{}
	todo := references(paths)
	for _, name := range webhooks {
		todo = append(todo, "#/components/schemas/"+name)
	}
	if err := collect(all["components"].(object), components, todo); err != nil {
		return err
	}
	return write(out, object{
		"openapi": all["openapi"],
		"info": object{
			"title":       "A part of GitHub's OpenAPI description",
			"version":     all["info"].(object)["version"],
			"license":     all["info"].(object)["license"],
			"description": "Taken from the npm package " + source + ", generated/api.github.com.json, by scripts/openapi: do not edit.",
		},
		"paths": paths, "components": components,
	})
}

func pick(all object) (object, error) {
	paths := object{}
	for _, o := range wanted() {
		method, path, _ := strings.Cut(o, " ")
		item, _ := all[path].(object)
		operation := item[strings.ToLower(method)]
		if operation == nil {
			return nil, fmt.Errorf("the description has no %s", o)
		}
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(method)] = operation
		if shared := item["parameters"]; shared != nil {
			paths[path].(object)["parameters"] = shared
		}
	}
	return paths, nil
}

// correct puts right what the package has wrong: among the installations of an app it wants every account to be a user and an
// enterprise at once (allOf), where the schema of one installation, which this one copies, has either (anyOf).
func correct(paths object) error {
	at := any(paths)
	for _, key := range []string{"/app/installations", "get", "responses", "200", "content", "application/json", "schema"} {
		below, ok := at.(object)
		if !ok {
			return fmt.Errorf("GET /app/installations has no %s to correct", key)
		}
		at = below[key]
	}
	list, ok := at.(object)
	if !ok {
		return fmt.Errorf("GET /app/installations has no schema to correct")
	}
	list["items"] = object{"$ref": "#/components/schemas/installation"}
	return nil
}

// widen lets the name of a branch have slashes, as the description says by x-multi-segment, which the router of the tests does not know.
// It also gives the refusal to delete a branch the body that GitHub sends and the description leaves out.
func widen(paths object) error {
	const at = repo + "/git/refs/"
	item, _ := paths[at+"{ref}"].(object)
	operation, _ := item["delete"].(object)
	responses, _ := operation["responses"].(object)
	if responses["422"] == nil {
		return fmt.Errorf("the description has no DELETE %s{ref} with a 422 to widen", at)
	}
	responses["422"] = object{"$ref": "#/components/responses/validation_failed_simple"}
	delete(paths, at+"{ref}")
	paths[at+"{ref*}"] = item
	return nil
}

// lighten removes what is idle below v. The description of a response is required, so it is only emptied. Within properties every
// key is a name of the API's own.
func lighten(v any, names bool) {
	switch v := v.(type) {
	case object:
		for key, value := range v {
			if !names && slices.Contains(idle, key) {
				delete(v, key)
				continue
			}
			if text, ok := value.(string); ok && !names && key == "description" {
				if first, _, more := strings.Cut(text, "\n"); more {
					v[key] = first
				}
				continue
			}
			lighten(value, !names && key == "properties")
		}
	case []any:
		for _, e := range v {
			lighten(e, false)
		}
	}
}

// references are all those below v, in order.
func references(v any) []string {
	var out []string
	switch v := v.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if text, ok := v[key].(string); ok && key == "$ref" {
				out = append(out, text)
				continue
			}
			out = append(out, references(v[key])...)
		}
	case []any:
		for _, e := range v {
			out = append(out, references(e)...)
		}
	}
	return out
}

// collect copies what the references name, and what that refers to in its turn.
func collect(from, into object, todo []string) error {
	for len(todo) > 0 {
		ref := todo[0]
		todo = todo[1:]
		parts := strings.Split(ref, "/") // #/components/KIND/NAME
		if len(parts) != 4 {
			return fmt.Errorf("reference %s is of another form", ref)
		}
		kind, name := parts[2], parts[3]
		if into[kind] == nil {
			into[kind] = object{}
		}
		if into[kind].(object)[name] != nil {
			continue
		}
		group, _ := from[kind].(object)
		found := group[name]
		if found == nil {
			return fmt.Errorf("reference %s leads nowhere", ref)
		}
		lighten(found, false)
		into[kind].(object)[name] = found
		todo = append(todo, references(found)...)
	}
	return nil
}
