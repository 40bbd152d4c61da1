package githubsim

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/runner/runnerfiles"
)

// GitHub's bounds of a page.
const (
	defaultPage = 30
	maxPage     = 100
)

// maxLabels is GitHub's bound of the custom labels of a runner.
const maxLabels = 100

// maxLabel is how many characters a label may have.
const maxLabel = 256

// registration is what a runner is registered with.
type registration struct {
	scope, name                string
	labels                     []string
	group                      int64
	ephemeral, replace, hosted bool
	jit                        bool
}

func (q registration) check() error {
	if q.name == "" || len(q.name) > 64 {
		return problem(http.StatusUnprocessableEntity, "Invalid request. The runner name must have 1 to 64 characters.")
	}
	for _, l := range q.labels {
		if l = strings.TrimSpace(l); l == "" || len(l) > maxLabel {
			return problem(http.StatusUnprocessableEntity, "Invalid request. A label must have 1 to %d characters.", maxLabel)
		}
	}
	return nil
}

// addRunner makes a registration, or with replace takes over the one of that name.
func (s *Server) addRunner(q registration) (*runner, string, error) {
	q.name = strings.TrimSpace(q.name)
	if err := q.check(); err != nil {
		return nil, "", err
	}
	scope, name := q.scope, q.name
	secret, hash := newSecret()
	r := s.runnerNamed(scope, name)
	switch {
	case r == nil:
		r = &runner{ID: s.nextID("runner", 1), Scope: scope, Name: name, CreatedAt: s.now()}
		s.revive(r)
		s.runners[r.ID] = r
	case !q.replace:
		return nil, "", problem(http.StatusConflict, "Already exists - A runner with the name %s already exists.", name)
	case r.JobID != 0:
		return nil, "", stillBusy(r)
	}
	r.Labels, r.Ephemeral, r.Credential, r.Session = makeLabels(q.labels, q.hosted || q.jit), q.ephemeral, hash, ""
	r.GroupID, r.Hosted = q.group, q.hosted
	r.notify()
	s.put(kindRunner, r.ID, r)
	s.log.Info("runner registered", "runner", r.Name, "id", r.ID, "scope", scope)
	return r, secret, nil
}

// defaultLabels are those of a runner that registers by itself.
var defaultLabels = []string{"self-hosted", "Linux", "X64"}

// makeLabels puts the default labels before the custom ones, unless the runner has those alone that it was given: a machine of GitHub's
// own, and one with a JIT configuration.
func makeLabels(custom []string, alone bool) []label {
	out := []label{}
	add := func(name, kind string) {
		name = strings.TrimSpace(name)
		if name == "" || slices.ContainsFunc(out, func(l label) bool { return strings.EqualFold(l.Name, name) }) {
			return
		}
		out = append(out, label{idOf(name), name, kind})
	}
	if !alone {
		for _, n := range defaultLabels {
			add(n, "read-only")
		}
	}
	for _, n := range custom {
		kind := "custom"
		if slices.ContainsFunc(defaultLabels, func(d string) bool { return strings.EqualFold(d, strings.TrimSpace(n)) }) {
			kind = "read-only"
		}
		add(n, kind)
	}
	return out
}

func (s *Server) runnerNamed(scope, name string) *runner {
	for _, r := range s.runners {
		if strings.EqualFold(r.Scope, scope) && strings.EqualFold(r.Name, name) {
			return r
		}
	}
	return nil
}

func stillBusy(r *runner) error {
	return problem(http.StatusUnprocessableEntity, "Bad request - Runner %q is still running a job", r.Name)
}

func (s *Server) removeRunner(r *runner) {
	delete(s.runners, r.ID)
	s.put(kindRunner, r.ID, nil)
	r.notify()
	s.log.Info("runner removed", "runner", r.Name, "id", r.ID)
}

// runnerIn finds the runner that the path of a call names, in the scope it names.
func (s *Server) runnerIn(r *http.Request) (*runner, error) {
	id, err := pathID(r, "id")
	if err != nil {
		return nil, err
	}
	found := s.runners[id]
	if found == nil || found.Hosted || !strings.EqualFold(found.Scope, scopeOf(r)) {
		return nil, errNotFound
	}
	return found, nil
}

func (s *Server) listRunners(r *http.Request) (*answer, error) {
	page, perPage := pageOf(r)
	name := r.URL.Query().Get("name")
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*runner
	for _, rn := range s.runners {
		if !rn.Hosted && strings.EqualFold(rn.Scope, scopeOf(r)) && (name == "" || rn.Name == name) {
			found = append(found, rn)
		}
	}
	slices.SortFunc(found, func(a, b *runner) int { return cmp.Compare(a.ID, b.ID) })
	from, to, header := paginate(r, s.baseURL, len(found), page, perPage)
	list := []object{}
	for _, rn := range found[from:to] {
		list = append(list, s.runnerObject(rn))
	}
	a := ok(object{"total_count": len(found), "runners": list})
	a.header = header
	return a, nil
}

func pageOf(r *http.Request) (page, perPage int) {
	q := r.URL.Query()
	page, perPage = 1, defaultPage
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 0 {
		page = n
	}
	if n, err := strconv.Atoi(q.Get("per_page")); err == nil && n > 0 {
		perPage = min(n, maxPage)
	}
	return page, perPage
}

// paginate cuts one page out of total and makes the Link header of it.
func paginate(r *http.Request, base string, total, page, perPage int) (from, to int, header http.Header) {
	last := max(1, (total+perPage-1)/perPage)
	link := func(n int, rel string) string {
		q := r.URL.Query()
		q.Set("page", strconv.Itoa(n))
		q.Set("per_page", strconv.Itoa(perPage))
		u := url.URL{Path: r.URL.Path, RawQuery: q.Encode()}
		return fmt.Sprintf("<%s%s>; rel=%q", base, u.String(), rel)
	}
	var links []string
	if page > 1 {
		links = append(links, link(min(page-1, last), "prev"))
	}
	if page < last {
		links = append(links, link(page+1, "next"), link(last, "last"))
	}
	if page > 1 {
		links = append(links, link(1, "first"))
	}
	header = http.Header{}
	if len(links) > 0 {
		header.Set("Link", strings.Join(links, ", "))
	}
	from = min((page-1)*perPage, total)
	return from, min(from+perPage, total), header
}

// page is one page of a list: under the key, with the length of it all, or by itself without a key.
func (s *Server) page(r *http.Request, key string, list []object) *answer {
	page, perPage := pageOf(r)
	from, to, header := paginate(r, s.baseURL, len(list), page, perPage)
	a := &answer{status: http.StatusOK, header: header, body: list[from:to]}
	if key != "" {
		a.body = object{"total_count": len(list), key: list[from:to]}
	}
	return a
}

func (s *Server) getRunner(r *http.Request) (*answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rn, err := s.runnerIn(r)
	if err != nil {
		return nil, err
	}
	return ok(s.runnerObject(rn)), nil
}

func (s *Server) deleteRunner(r *http.Request) (*answer, error) {
	return nil, s.change(func() error {
		rn, err := s.runnerIn(r)
		if err != nil {
			return err
		}
		if rn.JobID != 0 {
			return stillBusy(rn)
		}
		s.removeRunner(rn)
		return nil
	})
}

func (s *Server) listLabels(r *http.Request) (*answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rn, err := s.runnerIn(r)
	if err != nil {
		return nil, err
	}
	return labelList(rn), nil
}

func labelList(r *runner) *answer {
	return ok(object{"total_count": len(r.Labels), "labels": labelObjects(r.Labels)})
}

func (s *Server) deleteLabels(r *http.Request) (*answer, error) {
	return s.changeLabels(r, func(rn *runner) error {
		rn.Labels = slices.DeleteFunc(rn.Labels, func(l label) bool { return l.Type == "custom" })
		return nil
	})
}

func (s *Server) deleteLabel(r *http.Request) (*answer, error) {
	return s.changeLabels(r, func(rn *runner) error {
		i := slices.IndexFunc(rn.Labels, func(l label) bool { return strings.EqualFold(l.Name, r.PathValue("name")) })
		switch {
		case i < 0:
			return errNotFound
		case rn.Labels[i].Type != "custom":
			return problem(http.StatusUnprocessableEntity, "Label %s is read-only and cannot be removed", rn.Labels[i].Name)
		}
		rn.Labels = slices.Delete(rn.Labels, i, i+1)
		return nil
	})
}

func (s *Server) changeLabels(r *http.Request, f func(*runner) error) (a *answer, err error) {
	err = s.change(func() error {
		rn, err := s.runnerIn(r)
		if err != nil {
			return err
		}
		if err := f(rn); err != nil {
			return err
		}
		s.put(kindRunner, rn.ID, rn)
		a = labelList(rn)
		return nil
	})
	return a, err
}

type jitRequest struct {
	Name          string   `json:"name"`
	RunnerGroupID *int64   `json:"runner_group_id"`
	Labels        []string `json:"labels"`
	WorkFolder    string   `json:"work_folder"`
}

func (q jitRequest) check() error {
	switch {
	case q.RunnerGroupID == nil:
		return problem(http.StatusUnprocessableEntity, "Invalid request.\n\n\"runner_group_id\" wasn't supplied.")
	case len(q.Labels) < 1 || len(q.Labels) > maxLabels:
		return problem(http.StatusUnprocessableEntity, "Invalid request.\n\n\"labels\" must have 1 to %d items.", maxLabels)
	}
	return nil
}

// generateJIT registers an ephemeral runner and returns its configuration files, as the real endpoint does.
func (s *Server) generateJIT(r *http.Request) (*answer, error) {
	var q jitRequest
	if err := decode(r, &q, false); err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	var a *answer
	err := s.change(func() error {
		if !s.hasGroup(r.PathValue("org") != "", *q.RunnerGroupID) {
			return errNotFound
		}
		rn, secret, err := s.addRunner(registration{jit: true,
			scope: scopeOf(r), name: q.Name, labels: q.Labels, group: *q.RunnerGroupID, ephemeral: true,
		})
		if err != nil {
			return err
		}
		encoded, err := encodeJIT(s.baseURL, rn, secret, cmp.Or(q.WorkFolder, "_work"))
		a = created(object{"runner": s.runnerObject(rn), "encoded_jit_config": encoded})
		return err
	})
	return a, err
}

func encodeJIT(base string, r *runner, secret, workFolder string) (string, error) {
	files, err := runnerfiles.Files(runnerfiles.Settings{
		AgentID: r.ID, AgentName: r.Name, ServerURL: base, GitHubURL: base + "/" + r.Scope, WorkFolder: workFolder, Ephemeral: true,
	}, secret)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(files) // a []byte is base64 in JSON, which is the real format
	if err != nil {
		return "", fmt.Errorf("encode JIT configuration: %w", err)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}
