package gitdata

import (
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

// Objects are the trees, commits and branches of all repositories. They are kept in memory, so a stand-in that starts again has none. A
// repository has no branch of its own at first, and unlike GitHub a repository without branches takes commits.
type Objects struct {
	now     func() time.Time
	started func(Push) error
	url     func() string

	mu       sync.Mutex
	trees    map[string]map[string]string // by repository and SHA: the files, by path
	commits  map[string]string            // by repository and SHA: the SHA of the tree
	branches map[string]string            // by repository and name, such as refs/heads/main: the SHA of the commit
}

// Push is a branch that was made, with what starts workflow runs of it.
type Push struct {
	Repository, Ref, SHA string
	// Workflows are the files of its workflows, by path.
	Workflows map[string]string
}

// New returns no objects. now is the time of commits, url the address of the server for its answers, and started is called with every
// branch that is made.
func New(now func() time.Time, url func() string, started func(Push) error) *Objects {
	return &Objects{
		now: now, url: url, started: started,
		trees: map[string]map[string]string{}, commits: map[string]string{}, branches: map[string]string{},
	}
}

func repositoryOf(r *http.Request) string {
	return strings.ToLower(r.PathValue("owner") + "/" + r.PathValue("repo"))
}

// shaOf is a SHA-1, and not the one that git computes.
func shaOf(kind string, content any) string {
	text, _ := json.Marshal(content) // texts and maps of texts: it cannot fail
	return fmt.Sprintf("%x", sha1.Sum(append([]byte(kind+"\n"), text...)))
}

// api is the address of an object.
func (o *Objects) api(r *http.Request, path string) string {
	return o.url() + "/api/v3/repos/" + r.PathValue("owner") + "/" + r.PathValue("repo") + "/git/" + path
}

// treeEntry is one file of a tree. Directories come of its path.
type treeEntry struct {
	Path    string  `json:"path"`
	Mode    string  `json:"mode"`
	Type    string  `json:"type"`
	Content *string `json:"content"`
}

// CreateTree makes a tree of files with their content. Trees on top of another one, and files by their SHA, are not supported.
func (o *Objects) CreateTree(r *http.Request) (*rest.Answer, error) {
	var q struct {
		BaseTree string      `json:"base_tree"`
		Tree     []treeEntry `json:"tree"`
	}
	if err := rest.Decode(r, &q, false); err != nil {
		return nil, err
	}
	if q.BaseTree != "" || len(q.Tree) == 0 {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "The GitHub stand-in takes a tree of one file or more, without base_tree.")
	}
	files := map[string]string{}
	for _, e := range q.Tree {
		if e.Path == "" || e.Mode != "100644" || e.Type != "blob" || e.Content == nil {
			return nil, rest.Problem(http.StatusUnprocessableEntity, "The GitHub stand-in takes a file with path, mode 100644, type blob and content.")
		}
		files[e.Path] = *e.Content
	}
	sha := shaOf("tree", files)
	o.mu.Lock()
	o.trees[repositoryOf(r)+" "+sha] = files
	o.mu.Unlock()
	list := []rest.Object{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		blob := shaOf("blob", files[path])
		list = append(list, rest.Object{
			"path": path, "mode": "100644", "type": "blob", "sha": blob, "size": len(files[path]), "url": o.api(r, "blobs/"+blob),
		})
	}
	return rest.Created(rest.Object{"sha": sha, "url": o.api(r, "trees/"+sha), "tree": list, "truncated": false}), nil
}

// CreateCommit makes a commit of a tree, with or without parents.
func (o *Objects) CreateCommit(r *http.Request) (*rest.Answer, error) {
	var q struct {
		Message string   `json:"message"`
		Tree    string   `json:"tree"`
		Parents []string `json:"parents"`
	}
	if err := rest.Decode(r, &q, false); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	repository := repositoryOf(r)
	if o.trees[repository+" "+q.Tree] == nil {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "Tree SHA does not exist")
	}
	parents := []rest.Object{}
	for _, p := range q.Parents {
		if o.commits[repository+" "+p] == "" {
			return nil, rest.Problem(http.StatusUnprocessableEntity, "Parent SHA does not exist or is not a commit object")
		}
		parents = append(parents, rest.Object{"sha": p, "url": o.api(r, "commits/"+p), "html_url": o.api(r, "commits/"+p)})
	}
	at := o.now().UTC().Format(time.RFC3339)
	sha := shaOf("commit", []any{q.Message, q.Tree, q.Parents, at, len(o.commits)})
	o.commits[repository+" "+sha] = q.Tree
	person := rest.Object{"name": "octocat", "email": "octocat@example.com", "date": at}
	return rest.Created(rest.Object{
		"sha": sha, "node_id": "C_" + sha, "url": o.api(r, "commits/"+sha), "html_url": o.api(r, "commits/"+sha), "message": q.Message,
		"author": person, "committer": person, "tree": rest.Object{"sha": q.Tree, "url": o.api(r, "trees/"+q.Tree)}, "parents": parents,
		"verification": rest.Object{"verified": false, "reason": "unsigned", "signature": nil, "payload": nil, "verified_at": nil},
	}), nil
}

// CreateRef makes a branch at a commit, which is a push to it: the workflows of the commit's tree that run on a push start.
func (o *Objects) CreateRef(r *http.Request) (*rest.Answer, error) {
	var q struct {
		Ref string `json:"ref"`
		SHA string `json:"sha"`
	}
	if err := rest.Decode(r, &q, false); err != nil {
		return nil, err
	}
	if err := o.branch(repositoryOf(r), q.Ref, q.SHA); err != nil {
		return nil, err
	}
	push := Push{Repository: r.PathValue("owner") + "/" + r.PathValue("repo"), Ref: q.Ref, SHA: q.SHA}
	push.Workflows = o.workflows(repositoryOf(r), q.SHA)
	if err := o.started(push); err != nil {
		return nil, err
	}
	return rest.Created(rest.Object{
		"ref": q.Ref, "node_id": "R_" + shaOf("ref", q.Ref), "url": o.api(r, q.Ref),
		"object": rest.Object{"type": "commit", "sha": q.SHA, "url": o.api(r, "commits/"+q.SHA)},
	}), nil
}

func (o *Objects) branch(repository, ref, sha string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !strings.HasPrefix(ref, "refs/heads/"):
		return rest.Problem(http.StatusUnprocessableEntity, "The GitHub stand-in has branches alone: refs/heads/NAME.")
	case o.commits[repository+" "+sha] == "":
		return rest.Problem(http.StatusUnprocessableEntity, "Object does not exist")
	case o.branches[repository+" "+ref] != "":
		return rest.Problem(http.StatusUnprocessableEntity, "Reference already exists")
	}
	o.branches[repository+" "+ref] = sha
	return nil
}

// onPush matches a workflow file that a push starts: the stand-in reads nothing else of its events.
var onPush = regexp.MustCompile(`(?m)^on: *(push *$|\[.*\bpush\b)|^on:\s*\n(\s+.*\n)*?\s+push:`)

// workflows are the files of a commit that a push starts, by path.
func (o *Objects) workflows(repository, sha string) map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]string{}
	for path, content := range o.trees[repository+" "+o.commits[repository+" "+sha]] {
		if strings.HasPrefix(path, ".github/workflows/") && onPush.MatchString(content) {
			out[path] = content
		}
	}
	return out
}

// DeleteRef removes a branch.
func (o *Objects) DeleteRef(r *http.Request) (*rest.Answer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := repositoryOf(r) + " refs/" + r.PathValue("ref")
	if o.branches[key] == "" {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "Reference does not exist")
	}
	delete(o.branches, key)
	return nil, nil
}
