package imdstest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	tokenPath = "/latest/api/token"
	ttlHeader = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	// longestTTL of a token, in seconds: six hours.
	longestTTL = 21600
	header     = "X-Aws-Ec2-Metadata-Token"
)

// answer is a status and a text.
type answer struct {
	status int
	text   string
}

var notFound = answer{http.StatusNotFound, "404 - Not Found"}

func found(text string) answer {
	if text == "" {
		return notFound
	}
	return answer{http.StatusOK, text}
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	status, faulty := s.faultOf(r.URL.Path)
	a := answer{status: status}
	if !faulty {
		a = s.answer(w, r)
	}
	s.calls = append(s.calls, Call{r.Method, r.URL.Path, a.status})
	s.mu.Unlock()
	if a.status == 0 {
		hang(r)
		return
	}
	w.Header().Set("Server", "EC2ws")
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(a.status)
	_, _ = fmt.Fprint(w, a.text) // a caller that went away
}

func (s *Service) answer(w http.ResponseWriter, r *http.Request) answer {
	switch {
	case r.URL.Path == tokenPath && r.Method == http.MethodPut:
		return s.token(w, r)
	case r.Method != http.MethodGet:
		return answer{status: http.StatusMethodNotAllowed}
	case r.Header.Get(header) == "":
		s.v1++
		return answer{status: http.StatusUnauthorized}
	case !time.Now().Before(s.tokens[r.Header.Get(header)]):
		return answer{status: http.StatusUnauthorized}
	}
	return s.machine.data(r.URL.Path)
}

// token gives one. A request that went through a proxy gets none.
func (s *Service) token(w http.ResponseWriter, r *http.Request) answer {
	seconds, err := strconv.Atoi(r.Header.Get(ttlHeader))
	switch {
	case err != nil || seconds < 1 || seconds > longestTTL:
		return answer{status: http.StatusBadRequest}
	case r.Header.Get("X-Forwarded-For") != "":
		return answer{status: http.StatusForbidden}
	}
	token := rand.Text()
	s.tokens[token] = time.Now().Add(time.Duration(seconds) * time.Second)
	w.Header().Set(ttlHeader, strconv.Itoa(seconds))
	return answer{http.StatusOK, token}
}

// data is what the machine tells at a path.
func (m Machine) data(path string) answer {
	switch path {
	case "/latest/dynamic/instance-identity/document":
		return found(m.document())
	case "/latest/user-data":
		return found(m.UserData)
	}
	name, ok := strings.CutPrefix(path, "/latest/meta-data/")
	if !ok {
		return notFound
	}
	if key, ok := strings.CutPrefix(name, "tags/instance/"); ok {
		return m.tag(key)
	}
	if role, ok := strings.CutPrefix(name, "iam/security-credentials/"); ok {
		return m.credentials(role)
	}
	return found(map[string]string{
		"instance-id": m.InstanceID, "instance-type": m.Type, "instance-life-cycle": m.Lifecycle,
		"placement/availability-zone": m.Zone, "placement/region": m.Region,
		"spot/instance-action": m.notice(), "events/recommendations/rebalance": m.recommendation(),
	}[name])
}

func (m Machine) document() string {
	if m.InstanceID == "" {
		return ""
	}
	return text(map[string]any{
		"version": "2017-09-30", "accountId": "123456789012", "instanceId": m.InstanceID, "region": m.Region,
		"availabilityZone": m.Zone, "instanceType": m.Type, "architecture": m.Arch,
	})
}

// tag lists the keys, or gives the value of one. A key is a part of the path as
// it is: EC2 refuses keys for which that could not be.
func (m Machine) tag(key string) answer {
	if key == "" {
		return found(strings.Join(slices.Sorted(maps.Keys(m.Tags)), "\n"))
	}
	value, ok := m.Tags[key]
	if !ok {
		return notFound
	}
	return answer{http.StatusOK, value}
}

func (m Machine) credentials(role string) answer {
	switch {
	case m.Role == "":
		return notFound
	case role == "":
		return found(m.Role)
	case role != m.Role:
		return notFound
	}
	return found(text(map[string]any{
		"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": time.Now().UTC().Format(time.RFC3339),
		"AccessKeyId": m.Credentials.AccessKeyID, "SecretAccessKey": m.Credentials.SecretAccessKey,
		"Token": m.Credentials.Token, "Expiration": m.Credentials.Expires.UTC().Format(time.RFC3339),
	}))
}

func (m Machine) notice() string {
	if m.InterruptionAt.IsZero() {
		return ""
	}
	return text(map[string]any{"action": "terminate", "time": m.InterruptionAt.UTC().Format(time.RFC3339)})
}

func (m Machine) recommendation() string {
	if m.RebalanceAt.IsZero() {
		return ""
	}
	return text(map[string]any{"noticeTime": m.RebalanceAt.UTC().Format(time.RFC3339)})
}

// text is JSON as the service writes it, over several lines.
func text(v map[string]any) string {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // texts and times always can be
	}
	return string(data)
}
