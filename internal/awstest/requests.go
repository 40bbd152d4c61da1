package awstest

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest/servicemodel"
)

// Requests is the file in the directory of SharedVariable to which test binaries append what they have validated: a line "ok SERVICE OPERATION
// COUNT" for the requests of an operation, and a line "illegal SENTENCE" for each that broke a rule without its test's leave.
const Requests = "requests"

// Models are AWS's own models of its services, from the botocore that moto brings.
func Models(t testing.TB) *servicemodel.Models {
	t.Helper()
	m, err := models()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var models = sync.OnceValues(func() (*servicemodel.Models, error) {
	dir, err := emulatorsDir()
	if err != nil {
		return nil, err
	}
	data, err := filepath.Glob(filepath.Join(dir, "moto/lib/python3*/site-packages/botocore/data"))
	if err != nil || len(data) != 1 {
		return nil, fmt.Errorf("find botocore's data in %s: %q %v", dir, data, err)
	}
	return servicemodel.Open(data[0]), nil
})

// emulatorsDir is where the emulators are installed: where make test says, or else where the installer does.
func emulatorsDir() (string, error) {
	dir := sharedDir()
	if dir == "" {
		i, err := installed()
		return i.emulators, err
	}
	if _, err := emulators.Root(); err != nil {
		return "", err
	}
	return awaitFile(dir, installedIn)
}

// SendsIllegal lets the requests of a test break a rule on purpose: one whose sentence contains the text, such as "CreateFleet: ClientToken
// has". The test fails if no request does.
func SendsIllegal(t testing.TB, sentence string) {
	t.Helper()
	s := callerOf(t).sent
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed[sentence] = false
}

// sent are the requests of a test.
type sent struct {
	test string

	mu sync.Mutex
	// allowed are what SendsIllegal was given, and whether a request broke it.
	allowed map[string]bool
	// wrong are sentences, each once, and how often.
	wrong map[string]int
	over  bool
}

func newSent(t testing.TB) *sent {
	return &sent{test: t.Name(), allowed: map[string]bool{}, wrong: map[string]int{}}
}

// validated counts the requests of this test binary that have not been handed over.
var validated struct {
	mu     sync.Mutex
	counts map[aws.Call]int
}

// validate holds a request against its service's model. What is wrong with it is reported when the test ends, since a request may come from any
// goroutine, and a daemon may outlive the test for a moment.
func (s *sent) validate(r *http.Request, body []byte) {
	call, ok := callOf(r, body)
	if !ok {
		s.report(fmt.Sprintf("%s %s: is no call in a protocol of AWS", r.Method, r.URL.Path))
		return
	}
	m, err := models()
	if err != nil {
		s.report(err.Error())
		return
	}
	illegal, err := m.Check(servicemodel.Request{Service: call.Service, Operation: call.Operation, Target: r.Header.Get(targetHeader), Body: body})
	if err != nil {
		s.report(err.Error())
		return
	}
	validated.mu.Lock()
	if validated.counts == nil {
		validated.counts = map[aws.Call]int{}
	}
	validated.counts[call]++
	validated.mu.Unlock()
	for _, i := range illegal {
		s.report(i.String())
	}
}

func (s *sent) report(sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for text := range s.allowed {
		if strings.Contains(sentence, text) {
			s.allowed[text] = true
			return
		}
	}
	s.wrong[sentence]++
	if s.over { // the test cannot fail any longer, the run can
		if err := s.handOver([]string{sentence}); err != nil {
			panic(err)
		}
	}
}

// end fails a test that sent something illegal, or did not though it said so.
func (s *sent) end(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	wrong := slices.Sorted(maps.Keys(s.wrong))
	for _, sentence := range wrong {
		t.Errorf("illegal request to AWS, sent %d times: %s", s.wrong[sentence], sentence)
	}
	for text, seen := range s.allowed {
		if !seen {
			t.Errorf("no request was illegal as SendsIllegal says: %q", text)
		}
	}
	if !t.Failed() { // nothing was wrong, or a test of this package kept it to itself
		wrong = nil
	}
	if err := s.handOver(wrong); err != nil {
		t.Error(err)
	}
}

// handOver appends what make test adds up. A lone go test has nothing to hand it to. One write of a file that is opened for appending is not
// mixed with that of another process.
func (s *sent) handOver(wrong []string) error {
	validated.mu.Lock()
	counts := validated.counts
	validated.counts = nil
	validated.mu.Unlock()
	dir := sharedDir()
	if dir == "" || len(counts) == 0 && len(wrong) == 0 {
		return nil
	}
	var lines strings.Builder
	for call, n := range counts {
		fmt.Fprintf(&lines, "ok %s %s %d\n", call.Service, call.Operation, n)
	}
	for _, sentence := range wrong {
		fmt.Fprintf(&lines, "illegal %s, in %s\n", strings.ReplaceAll(sentence, "\n", " "), s.test)
	}
	f, err := os.OpenFile(filepath.Join(dir, Requests), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("hand over the requests: %w", err)
	}
	_, err = f.WriteString(lines.String())
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
