package db

import "github.com/remuda-ci/remuda/internal/logkey"

const (
	// checkpointAfter is how many writes are let pile up in the log (the -wal
	// file) before they are copied into the file proper: about 10 MiB.
	checkpointAfter = 1000
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
	for {
		select {
		case <-d.checkpointDue:
		case <-d.closing:
			return
		}
		if err := d.checkpoint(c); err != nil {
			d.logger.Warn("checkpoint failed", logkey.File, d.path, logkey.Error, err)
		}
	}
}

func (d *DB) checkpoint(c *Conn) error {
	pages, err := c.checkpoint()
	if err != nil || pages < longLog {
		return err
	}
	// Only what was written during the first checkpoint is left, so this is short.
	w := <-d.writer
	defer func() { d.writer <- w }()
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
