package github_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// jit registers a runner as generate-jitconfig does.
func (f *fake) jit(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Name          string   `json:"name"`
		RunnerGroupID int64    `json:"runner_group_id"`
		Labels        []string `json:"labels"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Labels) == 0 {
		answer(w, http.StatusUnprocessableEntity, `{"message":"Validation Failed"}`)
		return
	}
	if request.RunnerGroupID < 1 || request.RunnerGroupID > int64(1+len(f.groups)) {
		answer(w, http.StatusNotFound, `{"message":"Not Found"}`)
		return
	}
	if slices.ContainsFunc(f.runners, func(other map[string]any) bool { return other["name"] == request.Name }) {
		answer(w, http.StatusConflict, fmt.Sprintf(`{"message":"Already exists - A runner with the name %s already exists."}`, request.Name))
		return
	}
	f.minted++
	id := 100 + f.minted
	f.runners = append(f.runners, map[string]any{"id": id, "name": request.Name, "status": "offline", "busy": false, "runner_group_id": request.RunnerGroupID})
	answer(w, http.StatusCreated, fmt.Sprintf(`{"runner":{"id":%d,"name":%q},"encoded_jit_config":%q}`, id, request.Name, jitOf(f.minted, `{"Ephemeral":"True"}`)))
}

// jitOf is a just-in-time configuration whose secret is AJIT and a number.
func jitOf(number int, settings string) string {
	text, err := json.Marshal(map[string][]byte{".runner": []byte(settings), ".credentials_rsaparams": fmt.Appendf(nil, "AJIT%d", number)})
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(text)
}

// listGroups: the group Default has id 1, the others follow.
func (f *fake) listGroups(w http.ResponseWriter, r *http.Request) {
	list := []map[string]any{{"id": 1, "name": "Default", "default": true}}
	for i, name := range f.groups {
		list = append(list, map[string]any{"id": i + 2, "name": name})
	}
	paged(w, r, "runner_groups", list)
}

func (f *fake) runRoutes(mux *http.ServeMux) {
	const actions = "/api/v3/repos/acme/app/actions"
	mux.HandleFunc("GET "+actions+"/runs", func(w http.ResponseWriter, r *http.Request) {
		list := []map[string]any{}
		for _, run := range f.runs {
			if status := r.URL.Query().Get("status"); status == "" || status == run["status"] {
				list = append(list, run)
			}
		}
		paged(w, r, "workflow_runs", list)
	})
	mux.HandleFunc("GET "+actions+"/runs/{id}", one(func() []map[string]any { return f.runs }))
	mux.HandleFunc("GET "+actions+"/runs/{id}/jobs", func(w http.ResponseWriter, r *http.Request) {
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
		jobs, ok := f.jobs[id]
		if !ok || r.URL.Query().Get("filter") != "latest" {
			answer(w, http.StatusNotFound, `{"message":"Not Found"}`)
			return
		}
		paged(w, r, "jobs", jobs)
	})
	mux.HandleFunc("GET "+actions+"/jobs/{id}", one(func() (all []map[string]any) {
		for _, jobs := range f.jobs {
			all = append(all, jobs...)
		}
		return all
	}))
	if f.releases != nil {
		mux.HandleFunc("GET /api/v3/repos/actions/runner/releases", func(w http.ResponseWriter, _ *http.Request) {
			body, _ := json.Marshal(f.releases)
			answer(w, http.StatusOK, string(body))
		})
	}
}

// one answers with the entry of a list that has the id of the path.
func one(of func() []map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, entry := range of() {
			if fmt.Sprint(entry["id"]) == r.PathValue("id") {
				body, _ := json.Marshal(entry)
				answer(w, http.StatusOK, string(body))
				return
			}
		}
		answer(w, http.StatusNotFound, `{"message":"Not Found"}`)
	}
}
