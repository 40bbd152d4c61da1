package db

import "time"

// purgeEvery is how often clearing expired rows begins, at most. Nothing
// relies on their end, so this only bounds how much piles up.
const purgeEvery = time.Minute

// purgeChunk is how many rows of a table are cleared in one transaction. A
// whole day's history at once would hold up the writes behind it for seconds.
const purgeChunk = 500

// purges clear one chunk each.
var purges = []string{
	`DELETE FROM instances WHERE rowid IN (SELECT rowid FROM instances WHERE expires_at <= ?1 LIMIT ?2)`,
	`DELETE FROM requests WHERE rowid IN (SELECT rowid FROM requests WHERE expires_at <= ?1 LIMIT ?2)`,
	`DELETE FROM events WHERE id IN (SELECT id FROM events WHERE expires_at <= ?1 LIMIT ?2)`,
	`DELETE FROM webhooks WHERE rowid IN (SELECT rowid FROM webhooks WHERE expires_at <= ?1 LIMIT ?2)`,
	`DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE expires_at <= ?1 LIMIT ?2)`,
	`DELETE FROM work WHERE rowid IN (SELECT rowid FROM work WHERE expires_at <= ?1 LIMIT ?2)`,
	`DELETE FROM workers WHERE rowid IN (SELECT rowid FROM workers WHERE expires_at <= ?1 LIMIT ?2)`,
	`DELETE FROM seen WHERE rowid IN (SELECT rowid FROM seen WHERE expires_at <= ?1 LIMIT ?2)`,
	`DELETE FROM messages WHERE id IN (SELECT id FROM messages WHERE expires_at <= ?1 LIMIT ?2)`,
}

// purge clears expired rows behind other writes: it starts at most once every
// purgeEvery, and then clears a chunk after each commit until none is full.
type purge struct {
	startedAt  time.Time
	unfinished bool
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
	clear := &write{done: make(chan struct{}), fn: func(c *Conn) error {
		for _, query := range purges {
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
