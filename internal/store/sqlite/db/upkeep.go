package db

import (
	"database/sql"
	"fmt"
	"os"
	"time"

	"github.com/remuda-ci/remuda/internal/logkey"
)

// purgeEvery is how often clearing expired rows begins, at most. Nothing
// relies on their end, so this only bounds how much piles up.
const purgeEvery = time.Minute

// purgeChunk is how many rows of a table are cleared in one transaction. A
// whole day's history at once would hold up the writes behind it for seconds.
const purgeChunk = 500

// expiringTables are the tables whose rows expire: those with a column for it.
const expiringTables = `SELECT t.name FROM sqlite_schema t, pragma_table_info(t.name) c
	WHERE t.type = 'table' AND c.name = 'expires_at' ORDER BY t.name`

// clearing are the statements that clear one chunk of each of those tables.
func clearing(c *Conn) (queries []string, err error) {
	err = c.Each(expiringTables, nil, func(rows *sql.Rows) error {
		var table string
		err := rows.Scan(&table)
		queries = append(queries, fmt.Sprintf(
			"DELETE FROM %s WHERE rowid IN (SELECT rowid FROM %s WHERE expires_at <= ?1 LIMIT ?2 + 0)", table, table))
		return err
	})
	return queries, err
}

// purge clears expired rows behind other writes: it starts at most once every
// purgeEvery, and then clears a chunk after each commit until none is full.
type purge struct {
	startedAt  time.Time
	unfinished bool
	queries    []string // made with the first chunk
}

func (p *purge) step(d *DB, c *Conn) error {
	now := d.now()
	if !p.unfinished && now.Sub(p.startedAt) < purgeEvery {
		return nil
	}
	if !p.unfinished {
		p.startedAt = now
	}
	p.unfinished = false
	if p.queries == nil {
		var err error
		if p.queries, err = clearing(c); err != nil {
			return err
		}
	}
	clear := &write{done: make(chan struct{}), fn: func(c *Conn) error {
		for _, query := range p.queries {
			n, err := c.Exec(query, Nanos(now), purgeChunk)
			if err != nil {
				return err
			}
			p.unfinished = p.unfinished || n == purgeChunk
		}
		return nil
	}}
	_, err := d.transact(c, []*write{clear})
	return err
}

const (
	// checkpointAfter is how many writes are let pile up in the log (the -wal
	// file) before they are copied into the file proper: about 10 MiB.
	checkpointAfter = 1000
	// The agents write too, in processes of their own: 200 of them write 180 MiB of heartbeats in an hour. So the log is looked at every
	// logEvery, and copied if its file has logBytes. A file that has been so long stays so, and a checkpoint with nothing to copy is one read.
	logEvery = 10 * time.Second
	logBytes = 10 << 20
	// longLog is the length of the log, in pages of 4 KiB, at which writes must stand still for a moment. The
	// log starts over only when all of it has been copied, and while writes go on there is always a rest.
	longLog = 8192
	// lightCheckpoint is the length at which an agent copies the log itself,
	// for the case that no controld is there to do it.
	lightCheckpoint = 4 * longLog
)

// checkpointLoop copies the log into the file beside the writer. SQLite's own way, in the commit that makes
// the log too long, would have every writer wait for a disk to sync, twice.
func (d *DB) checkpointLoop(c *Conn) {
	look := time.NewTicker(logEvery)
	defer look.Stop()
	for {
		select {
		case <-d.checkpointDue:
		case <-look.C:
			if info, err := os.Stat(d.path + "-wal"); err != nil || info.Size() < logBytes {
				continue
			}
		case <-d.closing:
			return
		}
		if err := d.checkpoint(c); err != nil {
			d.logger.Warn("checkpoint failed", logkey.File, d.path, logkey.Error, err)
		}
	}
}

func (d *DB) checkpoint(c *Conn) error {
	if d.damaged.Load() {
		return d.errDamagedLog("checkpoint")
	}
	pages, err := c.checkpoint()
	if err != nil || pages < longLog {
		return err
	}
	// Only what was written during the first checkpoint is left, so this is short.
	w := <-d.writer
	defer func() { d.writer <- w }()
	if d.damaged.Load() {
		return d.errDamagedLog("checkpoint")
	}
	_, err = w.checkpoint()
	return err
}

// wrote counts writes towards the next checkpoint.
func (d *DB) wrote(n int) {
	if d.unsettled += n; d.unsettled < checkpointAfter {
		return
	}
	select {
	case d.checkpointDue <- struct{}{}:
		d.unsettled = 0
	default: // one is due already
	}
}

// checkpoint copies what can be copied without waiting for anyone, and returns
// the length of the log in pages.
func (c *Conn) checkpoint() (pages int64, err error) {
	var busy, copied int64
	err = c.Get("PRAGMA wal_checkpoint(PASSIVE)", nil, &busy, &pages, &copied)
	return pages, err
}
