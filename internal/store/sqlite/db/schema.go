package db

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// schema makes the tables of a new file, and schemaVersion is in its header. Another version's file is refused.
//
//go:embed schema.sql
var schema string

const schemaVersion = 8

// applicationID marks the file as ours in its header: "rmda".
const applicationID = 0x726d6461

// createFile makes sure that the file is there, for this user alone: the registrations in it are secrets.
// SQLite gives its -wal and -shm files the same mode.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open database: %w: create the directory first", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("open database: %w: make the file and its directory writable for this user", err)
	case err != nil:
		return fmt.Errorf("open database: %w: choose a path for a file on a local disk", err)
	}
	return f.Close()
}

// findFile makes sure that there is a file to read.
func findFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read database: %w: nothing has been kept there yet, or it is kept elsewhere", err)
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("read database: %s is no file: name the database itself", path)
	case err != nil:
		return fmt.Errorf("read database: %w", err)
	}
	return nil
}

// dsn is the driver's name of the file. Committed writes survive the death of
// the process; the last ones may be lost, whole and in order, when the machine
// itself fails (synchronous NORMAL), which costs the hosts on it anyway.
func dsn(path string, cacheKiB, autoCheckpoint int) string {
	return fileURL(path, url.Values{"_pragma": {
		"busy_timeout(1)", // see DB.retry
		"synchronous(NORMAL)",
		fmt.Sprintf("cache_size(-%d)", cacheKiB),
		fmt.Sprintf("wal_autocheckpoint(%d)", autoCheckpoint),
		"journal_size_limit(67108864)",
		"trusted_schema(OFF)",
	}})
}

// readOnlyDSN is the same for who may not write.
func readOnlyDSN(path string) string {
	return fileURL(path, url.Values{"mode": {"ro"}, "_pragma": {
		"busy_timeout(1)", "query_only(ON)", fmt.Sprintf("cache_size(-%d)", cacheKiB), "trusted_schema(OFF)",
	}})
}

func fileURL(path string, query url.Values) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// prepare takes each step, again while another process has the file locked.
func (d *DB) prepare(c *Conn, steps ...func(*Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d.wait)
	defer cancel()
	for _, step := range steps {
		if err := d.retry(ctx, func() error { return step(c) }); err != nil {
			return d.fault("open", err)
		}
	}
	return nil
}

// checkOwner keeps us from writing into another program's file.
func (d *DB) checkOwner(c *Conn) error {
	var id, tables int64
	// In this order: a process that makes the tables in between names the owner with them.
	if err := c.Get("SELECT count(*) FROM sqlite_schema", nil, &tables); err != nil {
		return err
	}
	if err := c.Get("PRAGMA application_id", nil, &id); err != nil {
		return err
	}
	if id != applicationID && tables > 0 {
		return fmt.Errorf("open database %s: it belongs to another program: choose another path", d.path)
	}
	return nil
}

func walMode(c *Conn) error {
	var mode string
	return c.Get("PRAGMA journal_mode = WAL", nil, &mode)
}

// makeSchema makes the tables of a new file. Of two processes that open one at once, one does it and the other waits.
func (d *DB) makeSchema(c *Conn) error {
	if _, err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	version, err := schemaOf(c)
	switch {
	case err == nil && version == 0:
		_, err = c.conn.ExecContext(context.Background(),
			fmt.Sprintf("%s; PRAGMA application_id = %d; PRAGMA user_version = %d", schema, applicationID, schemaVersion))
	case err == nil:
		err = d.checkVersion(c)
	}
	if err != nil {
		return errors.Join(err, rollback(c))
	}
	_, err = c.Exec("COMMIT")
	return err
}

// schemaOf is the version of the file's schema: 0 for a new file.
func schemaOf(c *Conn) (version int64, err error) {
	err = c.Get("PRAGMA user_version", nil, &version)
	return version, err
}

func (d *DB) checkVersion(c *Conn) error {
	version, err := schemaOf(c)
	switch {
	case err != nil:
		return err
	case version > schemaVersion:
		return fmt.Errorf("open database %s: its schema has version %d, this program knows up to %d: "+
			"use the newer program, or another file", d.path, version, schemaVersion)
	case version < schemaVersion:
		return fmt.Errorf("open database %s: its schema has version %d, this program reads %d: "+
			"use the program that writes it, or another file", d.path, version, schemaVersion)
	}
	return nil
}
