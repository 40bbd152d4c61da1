package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// The jobs table has five kinds of rows, told apart by how their keys begin:
// jobs, webhooks, the turns of a pool, and the jobs and workers of services.

type (
	job     = lifecycle.Job
	jobPage = lifecycle.Page[lifecycle.Job]
)

// jobRowKey has the id in a fixed width, so that keys sort as ids do.
func jobRowKey(id int64) string { return fmt.Sprintf("job/%019d", id) }

// The shards of the index by due, a set for each kind of rows.
const dueJobShards, dueWebhookShards = "job-", "webhook-"

func shardsOf(kind string) (all []string) {
	for _, shard := range everyShard {
		all = append(all, kind+shard)
	}
	return all
}

// jobItem is the job with the attributes that its key and indexes need: it is
// by run while it is open, and by pool while it waits.
func jobItem(j job) (item, error) {
	it, err := encode(j, j.ExpiresAt)
	if err != nil {
		return nil, err
	}
	key := jobRowKey(j.ID)
	it[rowKey] = text(key)
	if j.State != lifecycle.JobDone {
		it[runKey] = text(lifecycle.RunKey(j.Repository, j.RunID))
	}
	if j.State == lifecycle.JobWaiting && j.Pool != "" {
		it[waitingKey] = text(timeText(j.QueuedAt) + " " + key)
	}
	if !j.DueAt.IsZero() {
		it[dueShard] = text(dueJobShards + shard(key))
	}
	return it, nil
}

func jobOf(it item) (job, error) {
	j, err := decode[job](it)
	j.ExpiresAt = exactly(j.ExpiresAt, it)
	return row.Job(j), err
}

// CreateJob writes a new job with version 1: ErrExists if its id is taken.
func (s *Store) CreateJob(ctx context.Context, j job) error {
	what := fmt.Sprintf("create job %d", j.ID)
	j.Version = 1
	_, err := s.putJob(ctx, what, j, s.isFree(rowKey))
	if errors.Is(err, errCondition) {
		return exists(what)
	}
	return err
}

// UpdateJob replaces the job whose stored version is j.Version and returns it
// as stored: else ErrLost.
func (s *Store) UpdateJob(ctx context.Context, j job) (job, error) {
	what := fmt.Sprintf("update job %d", j.ID)
	holds := isVersion(j.Version)
	j.Version++
	j, err := s.putJob(ctx, what, j, holds)
	if errors.Is(err, errCondition) {
		return job{}, lost(what)
	}
	return j, err
}

func (s *Store) putJob(ctx context.Context, what string, j job, c condition) (job, error) {
	if err := begin(ctx, what); err != nil {
		return job{}, err
	}
	j = row.Job(j)
	it, err := jobItem(j)
	if err != nil {
		return job{}, fmt.Errorf("%s: %w", what, err)
	}
	if err := s.put(ctx, what, jobs, it, c); err != nil {
		return job{}, err
	}
	return j, nil
}

// Job reads one job, consistently: ErrNotFound.
func (s *Store) Job(ctx context.Context, id int64) (job, error) {
	what := fmt.Sprintf("read job %d", id)
	it, err := s.getJobsRow(ctx, what, jobRowKey(id))
	if err != nil {
		return job{}, err
	}
	j, err := jobOf(it)
	switch {
	case err != nil:
		return job{}, fmt.Errorf("%s: %w", what, err)
	case expired(j.ExpiresAt, s.now()):
		return job{}, notFound(what)
	}
	return j, nil
}

// getJobsRow reads a row of the jobs table, consistently: ErrNotFound.
func (s *Store) getJobsRow(ctx context.Context, what, key string) (item, error) {
	if err := begin(ctx, what); err != nil {
		return nil, err
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: s.table(jobs), Key: item{rowKey: text(key)}, ConsistentRead: sdk.Bool(true),
	})
	if err != nil {
		return nil, s.failed(what, jobs, err)
	}
	if out.Item == nil {
		return nil, notFound(what)
	}
	return out.Item, nil
}

// OpenJobsOfRun lists the jobs of a run that are not done, by id.
func (s *Store) OpenJobsOfRun(ctx context.Context, repository, run string) ([]job, error) {
	r := read[job]{
		query:      query{listing: jobsByRun, partitions: []string{lifecycle.RunKey(repository, run)}},
		consistent: true, sound: s.soundJob,
		in: func(j job) bool {
			return j.Repository == repository && j.RunID == run && j.State != lifecycle.JobDone
		},
	}
	var open []job
	for of := (lifecycle.PageOf{Limit: maxPage}); ; {
		page, err := list(ctx, s, r, of)
		if err != nil {
			return nil, err
		}
		open = append(open, page.Items...)
		if of.After = page.Next; of.After == "" {
			return open, nil
		}
	}
}

// WaitingJobs lists the waiting jobs of a pool, in the order of Job.Before.
func (s *Store) WaitingJobs(ctx context.Context, pool string, of lifecycle.PageOf) (jobPage, error) {
	r := read[job]{
		query: query{listing: jobsByPool}, consistent: true, sound: s.soundJob,
		in: func(j job) bool { return j.Pool == pool && j.State == lifecycle.JobWaiting },
	}
	if pool != "" { // without which a job is not in the index
		r.partitions = []string{pool}
	}
	return list(ctx, s, r, of)
}

// DueJobs lists the jobs with dueAt at or before now, the longest due first. It
// reads what is due and nothing else.
func (s *Store) DueJobs(ctx context.Context, now time.Time, of lifecycle.PageOf) (jobPage, error) {
	return list(ctx, s, read[job]{
		query:      query{listing: jobsByDue, partitions: shardsOf(dueJobShards), upTo: timeText(now)},
		consistent: true, sound: s.soundJob,
		in: func(j job) bool { return expired(j.DueAt, now) },
	}, of)
}

// soundJob is the job of an item; false if it is damaged, which is told of
// once, or has expired.
func (s *Store) soundJob(it item) (job, bool) {
	j, err := jobOf(it)
	if err != nil {
		s.tellDamaged(jobs, textOf(it, rowKey), err)
		return job{}, false
	}
	return j, !expired(j.ExpiresAt, s.now())
}
