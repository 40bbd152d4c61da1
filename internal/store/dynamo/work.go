package dynamo

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/row"
)

type (
	workJob  = model.Job
	workPage = lifecycle.Page[model.Job]
)

// logTail is stored small: a row is written whole with every piece of its log,
// and a unit is paid for each KB. Logs are much alike from line to line.
const logTail = "logTail"

// dueWorkShards are those of the index by due; see jobs.go.
const dueWorkShards = "work-"

func workRowKey(service, id string) string { return "work/" + service + "/" + id }

// workPartition is where the jobs of a service in a state are in the index by
// pool. No pool is called like one.
func workPartition(service string, state model.JobState) string {
	return "work/" + service + "/" + string(state)
}

// workItem is the job with the attributes that its key and indexes need: it is
// by pool, with its service and state for one.
func workItem(j workJob) (item, error) {
	tail, err := squeeze(j.LogTail)
	if err != nil {
		return nil, err
	}
	j.LogTail = ""
	it, err := encode(j, j.ExpiresAt)
	if err != nil {
		return nil, err
	}
	if tail != nil {
		it[logTail] = &types.AttributeValueMemberB{Value: tail}
	}
	key := workRowKey(j.Service, j.ID)
	it[rowKey] = text(key)
	it[jobPool] = text(workPartition(j.Service, j.State))
	it[waitingKey] = text(timeText(j.CreatedAt) + " " + key)
	if !j.DueAt.IsZero() {
		it[dueShard] = text(dueWorkShards + shard(key))
	}
	return it, nil
}

func workOf(it item) (workJob, error) {
	var tail string
	if stored, ok := it[logTail]; ok {
		b, _ := stored.(*types.AttributeValueMemberB)
		if b == nil {
			return workJob{}, damagedError{logTail}
		}
		var err error
		if tail, err = unsqueeze(b.Value); err != nil {
			return workJob{}, damagedError{logTail}
		}
		it = maps.Clone(it)
		delete(it, logTail)
	}
	j, err := decode[workJob](it)
	if err != nil {
		return workJob{}, err
	}
	j.LogTail, j.ExpiresAt = tail, exactly(j.ExpiresAt, it)
	return row.WorkJob(j), nil
}

// squeeze makes a text small; none is nothing.
func squeeze(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	var small bytes.Buffer
	w, err := flate.NewWriter(&small, flate.DefaultCompression)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("encode log: %w", err)
	}
	return small.Bytes(), nil
}

// unsqueeze reads no more than a tail may have: what is small may become very
// large.
func unsqueeze(small []byte) (string, error) {
	tail, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(small)), model.MaxLogTail+1))
	if err == nil && len(tail) > model.MaxLogTail {
		err = errors.New("too long")
	}
	return string(tail), err
}

// CreateWork writes a new job with version 1: ErrExists if the service has one
// of its id.
func (s *Store) CreateWork(ctx context.Context, j workJob) error {
	what := fmt.Sprintf("create job %s of service %s", j.ID, j.Service)
	j.Version = 1
	_, err := s.putWork(ctx, what, j, s.isFree(rowKey))
	if errors.Is(err, errCondition) {
		return exists(what)
	}
	return err
}

// UpdateWork replaces the job whose stored version is j.Version and returns it
// as stored: else ErrLost.
func (s *Store) UpdateWork(ctx context.Context, j workJob) (workJob, error) {
	what := fmt.Sprintf("update job %s of service %s", j.ID, j.Service)
	holds := isVersion(j.Version)
	j.Version++
	j, err := s.putWork(ctx, what, j, holds)
	if errors.Is(err, errCondition) {
		return workJob{}, lost(what)
	}
	return j, err
}

func (s *Store) putWork(ctx context.Context, what string, j workJob, c condition) (workJob, error) {
	if err := begin(ctx, what); err != nil {
		return workJob{}, err
	}
	j = row.WorkJob(j)
	it, err := workItem(j)
	if err != nil {
		return workJob{}, fmt.Errorf("%s: %w", what, err)
	}
	if err := s.put(ctx, what, jobs, it, c); err != nil {
		return workJob{}, err
	}
	return j, nil
}

// Work reads one job, consistently: ErrNotFound.
func (s *Store) Work(ctx context.Context, service, id string) (workJob, error) {
	what := fmt.Sprintf("read job %s of service %s", id, service)
	it, err := s.getJobsRow(ctx, what, workRowKey(service, id))
	if err != nil {
		return workJob{}, err
	}
	j, err := workOf(it)
	switch {
	case err != nil:
		return workJob{}, fmt.Errorf("%s: %w", what, err)
	case expired(j.ExpiresAt, s.now()):
		return workJob{}, notFound(what)
	}
	return j, nil
}

// WaitingWork lists the ids of at most limit waiting jobs of a service, the
// oldest first. It reads the index alone.
func (s *Store) WaitingWork(ctx context.Context, service string, limit int) ([]string, error) {
	what := "list " + workByAge.name + " " + service
	if err := begin(ctx, what); err != nil {
		return nil, err
	}
	found, err := s.entries(ctx, what, query{
		listing: workByAge, partitions: []string{workPartition(service, model.JobWaiting)}, count: min(limit, maxPage),
	})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range found {
		ids = append(ids, e.key[len(workRowKey(service, "")):])
	}
	return ids, nil
}

// CountWork counts the jobs of a service that wait and run, at most so many of
// each. It reads their entries in the index, some 40 for half a unit.
func (s *Store) CountWork(ctx context.Context, service string, atMost int) (n model.JobCount, err error) {
	what := "count jobs of service " + service
	if err := begin(ctx, what); err != nil {
		return n, err
	}
	if n.Waiting, err = s.countPartition(ctx, what, workPartition(service, model.JobWaiting), atMost); err != nil {
		return model.JobCount{}, err
	}
	if n.Running, err = s.countPartition(ctx, what, workPartition(service, model.JobRunning), atMost); err != nil {
		return model.JobCount{}, err
	}
	return n, nil
}

func (s *Store) countPartition(ctx context.Context, what, partition string, atMost int) (n int, err error) {
	in := query{listing: workByAge}.input(s, partition)
	in.Select = types.SelectCount
	for n < atMost {
		in.Limit = sdk.Int32(int32(min(atMost-n, math.MaxInt32)))
		out, err := s.client.Query(ctx, in)
		if err != nil {
			return 0, s.failed(what, jobs, err)
		}
		n += int(out.Count)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			break
		}
	}
	return n, nil
}

// ListWork lists the jobs of a service that are in one of the states, the oldest
// first. The states are as read, so that one that was claimed meanwhile is in the
// list of those that run, or in none.
func (s *Store) ListWork(ctx context.Context, service string, states []model.JobState, of lifecycle.PageOf) (workPage, error) {
	var partitions []string
	for _, state := range states {
		partitions = append(partitions, workPartition(service, state))
	}
	return list(ctx, s, read[workJob]{
		query: query{listing: workByState, partitions: partitions},
		sound: s.soundWork,
		in:    func(j workJob) bool { return slices.Contains(states, j.State) },
	}, of)
}

// DueWork lists the jobs with dueAt at or before now, the longest due first. It
// reads what is due and nothing else.
func (s *Store) DueWork(ctx context.Context, now time.Time, of lifecycle.PageOf) (workPage, error) {
	return list(ctx, s, read[workJob]{
		query:      query{listing: workByDue, partitions: shardsOf(dueWorkShards), upTo: timeText(now)},
		consistent: true, sound: s.soundWork,
		in: func(j workJob) bool { return expired(j.DueAt, now) },
	}, of)
}

// soundWork is the job of an item; false if it is damaged, which is told of
// once, or has expired.
func (s *Store) soundWork(it item) (workJob, bool) {
	j, err := workOf(it)
	if err != nil {
		s.tellDamaged(jobs, textOf(it, rowKey), err)
		return workJob{}, false
	}
	return j, !expired(j.ExpiresAt, s.now())
}
