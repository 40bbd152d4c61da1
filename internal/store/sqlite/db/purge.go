package db

import (
	"database/sql"
	"fmt"
	"time"
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
			"DELETE FROM %s WHERE rowid IN (SELECT rowid FROM %s WHERE expires_at <= ?1 LIMIT ?2)", table, table))
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
