package awstest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/aws"
)

const (
	// forwardTimeout is for an emulator on a machine that is busy.
	forwardTimeout = 2 * time.Minute
	// forwards may wait at the same time without a new connection for each.
	forwards = 128
)

// Proxy stands between the SDK and the emulators. It records the calls, makes some of them fail, and lets a
// test answer what an emulator cannot. It does not look at signatures, nor do the emulators.
//
// A caller that was not set up by Config, such as a daemon of its own, is in the world of the test that made
// the proxy, whatever its credentials are: so each may have an identity of its own.
type Proxy struct {
	server *httptest.Server
	client *http.Client
	caller caller
	done   chan struct{} // closed when the test ends: nothing hangs any longer

	mu        sync.Mutex
	upstreams map[string]string // by service; "" is that of all others
	hooks     map[aws.Call]Hook
	faults    []*injected
	calls     []Call
	counts    map[aws.Call]int
	delay     time.Duration
}

// Call is one request that came to a Proxy, each try for itself.
type Call struct {
	aws.Call
	// Nth, from 1, of the calls of this operation.
	Nth int
	// Fault that it met.
	Fault Kind
	// Status of the answer; 0 if none was given, or not yet.
	Status int
	// Body of the request: JSON, or a form.
	Body []byte
}

// Hook answers a call in an emulator's place. Forward asks the emulator, also
// for other calls (see WithForm); what it asks is not recorded.
type Hook func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *Answer)

// injected is a fault and the calls that it met.
type injected struct {
	Fault
	seen   int
	struck chan Call
}

// NewProxy starts a proxy to an emulator, until the test ends.
func NewProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	p := &Proxy{
		client: &http.Client{
			Timeout:   forwardTimeout,
			Transport: &http.Transport{MaxIdleConnsPerHost: forwards, DisableCompression: true},
		},
		caller:    callerOf(t),
		done:      make(chan struct{}),
		upstreams: map[string]string{"": upstream},
		hooks:     map[aws.Call]Hook{},
		counts:    map[aws.Call]int{},
	}
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() {
		close(p.done)
		p.server.Close()
		p.client.CloseIdleConnections()
	})
	return p
}

// URL is the endpoint of the proxy.
func (p *Proxy) URL() string { return p.server.URL }

// Environ are the variables by which a program finds the proxy and nothing
// else of AWS, in the world of the test.
func (p *Proxy) Environ() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + p.URL(), "AWS_REGION=" + region, "AWS_PROFILE=",
		"AWS_ACCESS_KEY_ID=" + p.caller.accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey, "AWS_SESSION_TOKEN=",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
}

// Route sends the calls of a service to another emulator, so that one proxy
// sees the calls of all services in their order.
func (p *Proxy) Route(service, upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstreams[service] = upstream
}

// Handle lets a hook answer the calls of an operation. A fault comes before it.
func (p *Proxy) Handle(service, operation string, hook Hook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hooks[aws.Call{Service: service, Operation: operation}] = hook
}

// Wrap puts a hook around the one that answers the calls of an operation, or around the emulator.
func (p *Proxy) Wrap(service, operation string, around func(next Hook) Hook) {
	call := aws.Call{Service: service, Operation: operation}
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.hooks[call]
	if next == nil {
		next = func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *Answer) { forward(r).Write(w) }
	}
	p.hooks[call] = around(next)
}

// struckCalls is how many calls with a fault are remembered for tests that wait for one.
const struckCalls = 1024

// Inject makes calls fail from now on. The channel gives each of them as the fault meets it, and may be
// ignored. Of faults that meet the same call, the first one counts.
func (p *Proxy) Inject(f Fault) (struck <-chan Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := &injected{Fault: f, struck: make(chan Call, struckCalls)}
	p.faults = append(p.faults, i)
	return i.struck
}

// Heal takes all faults back. Calls that hang go on hanging.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// Delay makes each call from now on take that much longer, as the network to AWS does. An emulator on this machine answers
// sooner than AWS can.
func (p *Proxy) Delay(each time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = each
}

func (p *Proxy) delayOfEach() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

// Calls are those that came so far, in this order.
func (p *Proxy) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the caller gave up
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	call, ok := callOf(r, body)
	if !ok { // the emulator's own API
		p.forward(r).Write(w)
		return
	}
	if r.Header.Get(validatedHeader) == "" { // a daemon's
		p.caller.sent.validate(r, body)
	}
	n, fault := p.record(call, body)
	time.Sleep(p.delayOfEach())
	answer := p.answer(r, call, fault)
	p.answered(n, answer.Status)
	answer.Write(w)
}

// record notes a call and says what is to go wrong with it.
func (p *Proxy) record(call aws.Call, body []byte) (n int, fault Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[call]++
	c := Call{Call: call, Nth: p.counts[call], Body: body}
	for _, f := range p.faults {
		if !f.matches(call) {
			continue
		}
		f.seen++
		if c.Fault != NoFault || !f.strikes(f.seen) {
			continue
		}
		c.Fault = f.Kind
		select {
		case f.struck <- c:
		default:
		}
	}
	p.calls = append(p.calls, c)
	return len(p.calls) - 1, c.Fault
}

func (p *Proxy) answered(n, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[n].Status = status
}

// answer is what the caller gets; if that is nothing, it does not return.
func (p *Proxy) answer(r *http.Request, call aws.Call, fault Kind) *Answer {
	if refused := refusal(r, call, fault); refused != nil {
		return refused
	}
	switch fault {
	case NoFault:
		return p.carryOut(r, call)
	case LostAfterSuccess:
		p.carryOut(r, call)
	case Timeout:
		if r.Header.Get(timeoutHeader) != "" {
			return &Answer{Status: http.StatusGatewayTimeout, Header: http.Header{timeoutHeader: {"now"}}}
		}
		p.hang(r.Context())
	case Hang:
		p.hang(r.Context())
	}
	panic(http.ErrAbortHandler) // closes the connection
}

func (p *Proxy) hang(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-p.done:
	}
}

// carryOut has a call done by the test's hook or else by the emulator.
func (p *Proxy) carryOut(r *http.Request, call aws.Call) *Answer {
	p.mu.Lock()
	hook := p.hooks[call]
	p.mu.Unlock()
	if hook == nil {
		return p.forward(r)
	}
	w := httptest.NewRecorder()
	hook(w, r, p.forward)
	return &Answer{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}
}

// forward asks an emulator. As in AWS, a call that has arrived is carried out even if
// its caller is gone by then.
func (p *Proxy) forward(r *http.Request) *Answer {
	answer, err := p.ask(r)
	if err != nil {
		return Failure(r, http.StatusBadGateway, "Proxy", err.Error())
	}
	return answer
}

func (p *Proxy) ask(r *http.Request) (*Answer, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	url := p.upstream(serviceOf(r)) + r.URL.RequestURI()
	out, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.Header = r.Header.Clone()
	out.Host = r.Host // moto's queue URLs have it
	p.place(out)
	response, err := p.client.Do(out)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer := &Answer{Status: response.StatusCode, Header: response.Header}
	if answer.Body, err = io.ReadAll(response.Body); err != nil {
		return nil, err
	}
	// They are of this connection, or of a body that a hook may change.
	for _, name := range []string{"Connection", "Transfer-Encoding", "X-Amz-Crc32"} {
		answer.Header.Del(name)
	}
	return answer, nil
}

func (p *Proxy) upstream(service string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if url, ok := p.upstreams[service]; ok {
		return url
	}
	return p.upstreams[""]
}

// place puts a request of a caller that Config did not set up into the world of this test.
func (p *Proxy) place(r *http.Request) {
	if r.Header.Get(accountHeader) != "" {
		return
	}
	r.Header.Set(accountHeader, p.caller.account)
	if serviceOf(r) == "dynamodb" { // moto needs the access key: it says who calls
		r.Header.Set("Authorization", withAccessKey(r.Header.Get("Authorization"), p.caller.accessKey))
	}
}
