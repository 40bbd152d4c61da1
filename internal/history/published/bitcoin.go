package published

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/history"
)

// Bitcoin is a month of bitcoin/bitcoin, as bitcoin-core-ci-stats has read it from GitHub's API.
func Bitcoin() Record {
	return Record{
		Name:       "bitcoin-month",
		Repository: "willcl-ark/bitcoin-core-ci-stats",
		Commit:     "1d280fec182bd89bd50d9641c9cfb89faed903c0",
		Files:      []File{{"tasks.json.gz", 4186637, "df921bff2255a3cad0f1cee952d63bcb6f1294ae17adcc3dade9e822f7f5f049"}},
		Convert:    convertBitcoin,
	}
}

// The record has six weeks. bitcoinFrom and bitcoinTo bound the runs that the month has by their creation.
var (
	bitcoinFrom = time.Date(2025, 9, 15, 0, 0, 0, 0, time.UTC)
	bitcoinTo   = bitcoinFrom.AddDate(0, 0, 30)
)

// maxUnpacked bounds what is packed in a file, in bytes. The record has 47 MB.
const maxUnpacked = 256 << 20

// bitcoinTask is a job of the record. Times are in seconds since 1970.
type bitcoinTask struct {
	ID       int64 `json:"id"`
	Started  int64 `json:"executingTimestamp"`
	Finished int64 `json:"finalStatusTimestamp"`
	Run      struct {
		ID      int64 `json:"id"`
		Created int64 `json:"buildCreatedTimestamp"`
	} `json:"build"`
}

// convertBitcoin reads a packed list of tasks. It has no labels and no time at which a job was created, so a job's is that of its run.
func convertBitcoin(file []byte) (c Converted, err error) {
	unpacked, err := unpack(file)
	if err != nil {
		return c, err
	}
	var tasks []bitcoinTask
	if err := json.Unmarshal(unpacked, &tasks); err != nil {
		return c, fmt.Errorf("read the list of tasks: %.200w", err)
	}
	for i, t := range tasks {
		created := time.Unix(t.Run.Created, 0).UTC()
		switch {
		case t.ID <= 0 || t.Run.ID <= 0:
			return c, fmt.Errorf("task %d of the list: its id is %d, and that of its build %d; both are above 0", i+1, t.ID, t.Run.ID)
		case t.Run.Created <= 0 || t.Started <= 0 || t.Finished <= 0:
			return c, fmt.Errorf("task %d of the list, with the id %d, lacks a time", i+1, t.ID)
		case created.Before(bitcoinFrom) || !created.Before(bitcoinTo):
			continue
		case t.Finished <= t.Started:
			c.leaveOut(reasonNoTime, 1)
			continue
		}
		c.Jobs = append(c.Jobs, history.Job{
			ID: t.ID, RunID: strconv.FormatInt(t.Run.ID, 10), Repository: "bitcoin/bitcoin",
			Created: created, Started: time.Unix(t.Started, 0).UTC(), Completed: time.Unix(t.Finished, 0).UTC(),
		})
	}
	return c, nil
}

// unpack is what a gzip file has.
func unpack(file []byte) ([]byte, error) {
	in, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(in, maxUnpacked+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("unpack: %w", err)
	case len(data) > maxUnpacked:
		return nil, fmt.Errorf("unpack: it has more than %d MiB", maxUnpacked>>20)
	}
	return data, nil
}
