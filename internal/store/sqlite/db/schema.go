package db

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// migrationFiles are in the order of their names. The first makes a new file; each
// later one is a step of its own.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations[i] brings the file from version i to i+1.
var migrations = func() (all []string) {
	entries, err := migrationFiles.ReadDir("migrations")
	for _, e := range entries {
		var text []byte
		if err == nil {
			text, err = migrationFiles.ReadFile("migrations/" + e.Name())
		}
		all = append(all, string(text))
	}
	if err != nil {
		panic(err) // they are in the program
	}
	return all
}()

// applicationID marks the file as ours in its header: "rmda".
const applicationID = 0x726d6461

// createFile makes sure that the file is there, for this user alone: the
// registrations in it are secrets. SQLite gives its -wal and -shm files the
// same mode.
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

// migrate looks whose file this is and brings its schema up to date. Of two
// processes that open a new file at once, one does it and the other waits.
func (d *DB) migrate(c *Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), d.wait)
	defer cancel()
	steps := []func(*Conn) error{d.checkOwner, walMode, d.applyMigrations}
	for _, step := range steps {
		if err := d.retry(ctx, func() error { return step(c) }); err != nil {
			return d.fault("open", err)
		}
	}
	return nil
}

// checkSchema looks whose file this is and whether its schema is ours, without a
// change.
func (d *DB) checkSchema(c *Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), d.wait)
	defer cancel()
	for _, look := range []func(*Conn) error{d.checkOwner, d.checkVersion} {
		if err := d.retry(ctx, func() error { return look(c) }); err != nil {
			return d.fault("open", err)
		}
	}
	return nil
}

// checkVersion is for who may not migrate.
func (d *DB) checkVersion(c *Conn) error {
	version, err := d.version(c)
	if newest := len(migrations); err == nil && version < int64(newest) {
		return fmt.Errorf("read database %s: its schema has version %d, this program reads %d: use the program that writes it, "+
			"or start this one's daemon on it, which brings it up to date", d.path, version, newest)
	}
	return err
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

func (d *DB) applyMigrations(c *Conn) error {
	if _, err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := d.applyMissing(c); err != nil {
		return errors.Join(err, rollback(c))
	}
	_, err := c.Exec("COMMIT")
	return err
}

func (d *DB) applyMissing(c *Conn) error {
	version, err := d.version(c)
	if err != nil || version == int64(len(migrations)) {
		return err
	}
	for _, migration := range migrations[version:] {
		if _, err := c.conn.ExecContext(context.Background(), migration); err != nil {
			return err
		}
	}
	_, err = c.conn.ExecContext(context.Background(),
		fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(migrations)))
	return err
}

// version is that of the file's schema, which is none that is newer than ours.
func (d *DB) version(c *Conn) (int64, error) {
	var version int64
	if err := c.Get("PRAGMA user_version", nil, &version); err != nil {
		return 0, err
	}
	if newest := len(migrations); version > int64(newest) {
		return 0, fmt.Errorf("open database %s: its schema has version %d, this program knows up to %d: "+
			"use the newer program, or another file", d.path, version, newest)
	}
	return version, nil
}
