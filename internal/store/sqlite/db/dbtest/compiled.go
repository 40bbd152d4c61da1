package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	sqlite "modernc.org/sqlite"
)

// KeepsCompiled reports whether a second execution of the query uses what was compiled for the first. It takes less memory then.
func KeepsCompiled(t testing.TB, query string, args ...any) bool {
	t.Helper()
	first, second, err := piecesOf(t.Context(), File(t), query, args)
	if err != nil {
		t.Fatal(err)
	}
	return second < first/2
}

// piecesOf is how many small pieces of memory SQLite takes to compile and execute a query, and then to execute it again.
func piecesOf(ctx context.Context, path, query string, args []any) (first, second int, err error) {
	pool, err := sql.Open("sqlite", path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, "SELECT 1 FROM reports"); err != nil { // SQLite reads the schema with the first query
		return 0, 0, err
	}
	before, err := piecesTaken(conn)
	if err != nil {
		return 0, 0, err
	}
	statement, err := conn.PrepareContext(ctx, query)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, statement.Close()) }()
	var taken [2]int
	for i := range taken {
		if err := execute(ctx, statement, args); err != nil {
			return 0, 0, err
		}
		if taken[i], err = piecesTaken(conn); err != nil {
			return 0, 0, err
		}
	}
	return taken[0] - before, taken[1] - taken[0], nil
}

func execute(ctx context.Context, statement *sql.Stmt, args []any) error {
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// piecesTaken is how many pieces the connection has taken so far from its store of them.
func piecesTaken(conn *sql.Conn) (n int, err error) {
	err = conn.Raw(func(driver any) (err error) {
		_, n, err = driver.(sqlite.DBStatus).Status(sqlite.DBStatusLookasideHit, false)
		return err
	})
	return n, err
}
