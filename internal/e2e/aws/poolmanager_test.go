package aws_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/local"
)

const (
	// poolTable is the table of EC2 Runner Pool when it is given an endpoint of DynamoDB, and poolRegion the region that it signs for then.
	poolTable  = "testing-table"
	poolRegion = "local"
	// poolDelay is for how long it keeps a message from being received (src/services/sqs/operations/application-operations.ts).
	poolDelay = 3 * time.Second
	// poolHeartbeat, poolInvalidation and poolSelfCheck are the intervals of its hosts (src/services/constants.ts).
	poolHeartbeat    = 5 * time.Second
	poolInvalidation = 10 * time.Second
	poolSelfCheck    = 15 * time.Second
)

// secondAccount is a test's second account: the emulators keep the worlds of different tests apart.
type secondAccount struct{ testing.TB }

// poolManager is EC2 Runner Pool in an account of its own: its action as node runs it, and its hosts as goroutines that make the calls of its
// user data.
type poolManager struct {
	testing.TB
	dir     string // with dist/index.js
	github  *local.GitHub
	action  *awstest.Proxy
	hosts   *awstest.Proxy
	ec2     *ec2.Client // past the proxies
	sqs     *sqs.Client
	rows    *dynamodb.Client // of the hosts
	poll    atomic.Int64     // in ns
	network struct {
		image, group string
		subnets      []string
	}

	mu      sync.Mutex
	running map[string]context.CancelFunc // by instance id
	ended   sync.WaitGroup
}

func newPoolManager(t testing.TB, dir string) *poolManager {
	t.Helper()
	own := &secondAccount{t}
	a := emptyAccount(own)
	p := &poolManager{
		TB: t, dir: dir, github: startGitHub(t), action: a.controld, hosts: a.hosts, ec2: a.ec2, running: map[string]context.CancelFunc{},
		sqs: sqs.NewFromConfig(awstest.Config(own, awstest.Moto(t))),
	}
	p.action.Wrap("ec2", "CreateFleet", tagEverything)
	p.rows = dynamodb.NewFromConfig(awstest.Config(own, p.hosts.URL()), func(o *dynamodb.Options) { o.Region = poolRegion })
	p.network.image, p.network.subnets, p.network.group = a.network()
	p.set(usual)
	ctx, cancel := context.WithCancel(context.Background())
	p.ended.Go(func() { p.follow(ctx) })
	t.Cleanup(func() {
		cancel()
		p.ended.Wait()
	})
	p.run("refresh", "0", "ami", p.network.image, "github-token", "standin", "iam-instance-profile", profile,
		"security-group-ids", p.network.group, "subnet-ids", strings.Join(p.network.subnets, " "), "idle-time-sec", "3600")
	t.Cleanup(func() { // the emulator outlives this account
		_, err := p.rows.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: sdk.String(poolTable)})
		check(t, err)
	})
	return p
}

// tagEverything adds the tags without which ec2gap refuses a fleet: a policy of Remuda demands them, and EC2 does not.
func tagEverything(next awstest.Hook) awstest.Hook {
	return func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		form, err := awstest.Form(r)
		if err != nil {
			awstest.Fail(w, r, http.StatusBadRequest, "MalformedQueryString", err.Error())
			return
		}
		next(w, awstest.WithForm(r, withTags(form)), forward)
	}
}

func withTags(form url.Values) url.Values {
	n := 1
	for form.Has("TagSpecification." + strconv.Itoa(n) + ".ResourceType") {
		n++
	}
	for i, resource := range []string{"volume", "network-interface"} {
		prefix := "TagSpecification." + strconv.Itoa(n+i) + "."
		form.Set(prefix+"ResourceType", resource)
		form.Set(prefix+"Tag.1.Key", "Purpose")
		form.Set(prefix+"Tag.1.Value", "RunnerPoolProvisioning")
	}
	return form
}

func (p *poolManager) side() side { return side{"peer", p.action, p.hosts, p.github} }

func (p *poolManager) set(w way) {
	p.action.Delay(w.delay)
	p.hosts.Delay(w.delay)
	p.poll.Store(int64(w.poll))
}

// run runs the action in a mode, with inputs, and returns what it printed. The action says by its exit code whether it has failed.
func (p *poolManager) run(mode, runID string, inputs ...string) string {
	p.Helper()
	cmd := exec.Command("node", filepath.Join(p.dir, "dist/index.js"))
	cmd.Dir = p.TempDir()
	cmd.Env = append(p.action.Environ(),
		"PATH="+os.Getenv("PATH"), "HOME="+cmd.Dir, "MOCK_DYNAMODB_ENDPOINT="+p.action.URL(), "GITHUB_API_URL="+p.github.URL()+"/api/v3",
		"GITHUB_REPOSITORY="+repository, "GITHUB_RUN_ID="+runID, "INPUT_MODE="+mode)
	for i := 0; i+1 < len(inputs); i += 2 {
		cmd.Env = append(cmd.Env, "INPUT_"+strings.ToUpper(inputs[i])+"="+inputs[i+1])
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.Fatalf("EC2 Runner Pool, %s of run %s: %v\n%s", mode, runID, err, out)
	}
	return string(out)
}

func (p *poolManager) provision(runID string, hosts int) {
	p.Helper()
	p.run("provision", runID, "instance-count", strconv.Itoa(hosts))
}

func (p *poolManager) release(runID string) {
	p.Helper()
	p.run("release", runID)
}

// awaitMessages waits until what was released can be received.
func (p *poolManager) awaitMessages() { time.Sleep(poolDelay + time.Second/4) }

// follow boots what has come and ends what has gone, as often as the machines of a stage.
func (p *poolManager) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if err := p.look(ctx); err != nil && ctx.Err() == nil {
			p.Errorf("list instances: %v", err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

func (p *poolManager) look(ctx context.Context) error {
	instances, err := (&account{ec2: p.ec2}).instances(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range instances {
		id := *i.InstanceId
		end, runs := p.running[id]
		switch {
		case !runs && i.State.Name == ec2types.InstanceStateNameRunning:
			own, cancel := context.WithCancel(ctx)
			p.running[id] = cancel
			h := &poolHost{pool: p, id: id, first: tagOf(i, "InitialRunId")}
			p.ended.Go(func() { h.live(own) })
		case runs && !alive(i):
			end()
		}
	}
	return nil
}

func tagOf(i ec2types.Instance, key string) string {
	for _, tag := range i.Tags {
		if *tag.Key == key {
			return *tag.Value
		}
	}
	return ""
}

// endAll ends the instances and forgets them and their messages, which takes EC2 Runner Pool a refresh and half a minute.
func (p *poolManager) endAll() {
	p.Helper()
	ctx := p.Context()
	instances, err := (&account{ec2: p.ec2}).instances(ctx)
	check(p.TB, err)
	var ids []string
	for _, i := range instances {
		if alive(i) {
			ids = append(ids, *i.InstanceId)
		}
	}
	_, err = p.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
	check(p.TB, err)
	purge(p.TB, ctx, p.sqs)
	for _, id := range ids {
		for _, kind := range []string{"INSTANCE", "WS", "HEARTBEAT"} {
			_, err := p.rows.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: sdk.String(poolTable), Key: poolKey(kind, id)})
			check(p.TB, err)
		}
	}
}

// poolHost does what the user data of an instance does (src/refresh/manage-lt/userdata-v2/main-script.ts), except what it does with the runner:
// config.sh and run.sh take no time.
type poolHost struct {
	pool  *poolManager
	id    string
	first string // the run that it was launched for
}

func (h *poolHost) live(ctx context.Context) {
	var beside sync.WaitGroup
	err := h.signal(ctx, h.first, "UD_OK")
	beside.Go(func() { h.every(ctx, poolHeartbeat, h.beat) })
	beside.Go(func() { h.every(ctx, poolSelfCheck, h.checkThreshold) })
	for err == nil {
		err = h.serve(ctx)
	}
	beside.Wait()
	if ctx.Err() == nil {
		h.pool.Errorf("host %s of EC2 Runner Pool: %v", h.id, err)
	}
}

// serve waits for a run, registers, waits until the run has released the host, and deregisters.
func (h *poolHost) serve(ctx context.Context) error {
	run, err := h.await(ctx, func() time.Duration { return time.Duration(h.pool.poll.Load()) }, func(run string) bool { return run != "" })
	if err != nil {
		return err
	}
	if _, err := h.read(ctx, "METADATA", "gh_registration_token", false); err != nil {
		return err
	}
	if err := h.signal(ctx, run, "UD_REG_OK"); err != nil {
		return err
	}
	if _, err := h.await(ctx, func() time.Duration { return poolInvalidation }, func(now string) bool { return now != run }); err != nil {
		return err
	}
	if err := h.signal(ctx, run, "UD_REMOVE_REG_OK"); err != nil {
		return err
	}
	return h.signal(ctx, run, "UD_REMOVE_REG_REMOVE_RUN_OK")
}

// await reads the run of the host's row until it is as wanted.
func (h *poolHost) await(ctx context.Context, every func() time.Duration, wanted func(run string) bool) (run string, err error) {
	for {
		row, err := h.read(ctx, "INSTANCE", h.id, true)
		if err != nil {
			return "", err
		}
		if text, ok := row["runId"].(*types.AttributeValueMemberS); ok {
			run = text.Value
		}
		if wanted(run) {
			return run, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(every()):
		}
	}
}

func (h *poolHost) every(ctx context.Context, interval time.Duration, do func(context.Context) error) {
	for {
		if err := do(ctx); err != nil && !errors.Is(err, context.Canceled) && ctx.Err() == nil {
			h.pool.Errorf("host %s of EC2 Runner Pool: %v", h.id, err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
	}
}

func (h *poolHost) checkThreshold(ctx context.Context) error {
	_, err := h.read(ctx, "INSTANCE", h.id, true)
	return err
}

func (h *poolHost) beat(ctx context.Context) error {
	return h.put(ctx, "HEARTBEAT", &types.AttributeValueMemberS{Value: "PING"})
}

func (h *poolHost) signal(ctx context.Context, run, state string) error {
	return h.put(ctx, "WS", &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
		"state": &types.AttributeValueMemberS{Value: state}, "runId": &types.AttributeValueMemberS{Value: run},
	}})
}

func (h *poolHost) put(ctx context.Context, kind string, value types.AttributeValue) error {
	row := poolKey(kind, h.id)
	row["entityType"] = &types.AttributeValueMemberS{Value: kind}
	row["identifier"] = &types.AttributeValueMemberS{Value: h.id}
	row["value"] = value
	row["updatedAt"] = &types.AttributeValueMemberS{Value: time.Now().UTC().Format("2006-01-02T15:04:05Z")}
	_, err := h.pool.rows.PutItem(ctx, &dynamodb.PutItemInput{TableName: sdk.String(poolTable), Item: row})
	return err
}

func (h *poolHost) read(ctx context.Context, kind, id string, consistent bool) (map[string]types.AttributeValue, error) {
	got, err := h.pool.rows.GetItem(ctx, &dynamodb.GetItemInput{TableName: sdk.String(poolTable), Key: poolKey(kind, id), ConsistentRead: &consistent})
	if err != nil {
		return nil, err
	}
	return got.Item, nil
}

// poolKey is the key of a row (src/services/dynamodb/operations/basic-operations.ts).
func poolKey(kind, id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: "TYPE#" + kind}, "SK": &types.AttributeValueMemberS{Value: "ID#" + id},
	}
}
