package published

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/history"
)

// IREE is twelve days of iree-org/iree, as iree-ci-monitor has read them from GitHub's API. It has a file for each day (UTC) on which jobs were created.
func IREE() Record {
	return Record{
		Name:       "iree-days",
		Repository: "hanhanW/iree-ci-monitor",
		Commit:     "bca153f226966dfec81436d78d7c56aecf8e67a4",
		Files: []File{
			{"data/2026/04/23.jsonl", 1390511, "413c201ea274a6fe7cf11be3388a9438544152cae9216563749b7337baeb8deb"},
			{"data/2026/04/24.jsonl", 3089734, "d88d28cf14cbc613a8c07d4e4b51c9198793297b17e05bc80e64a8759c28c778"},
			{"data/2026/04/25.jsonl", 284663, "7f594f6e047949521d73662cdf39b7c34134535e882c7409bdc2929a7d514829"},
			{"data/2026/04/26.jsonl", 57824, "80104b86daf63d1820f55550c3450d61272fe8f6c2cec89611c11f10716883a1"},
			{"data/2026/04/27.jsonl", 996746, "bea8bdafc445a065566ded8f0ddb6f8a8c1d42c93896ebcc470287b87548d7a1"},
			{"data/2026/04/28.jsonl", 1973890, "a1cba484d2e568045190c9d11fbc7f51f13f60f6a7cd0b340fbd3e0da2a8ee6b"},
			{"data/2026/04/29.jsonl", 2084047, "6eb74d96964f027cc428f26956ad3b1a31eeaa1e234d7e8751d51134069e1919"},
			{"data/2026/04/30.jsonl", 2047115, "3d43fcc60b7fb66ba75bfbc1ed4a2fcb0225be7c70d0d7f42ef6a04325ecba17"},
			{"data/2026/05/01.jsonl", 1304420, "74d9a7e1fc4048f2a83f0509076f65504ee01a66fe573d087c9f44ded04c744a"},
			{"data/2026/05/02.jsonl", 47259, "205091419d521ef60e73713a42dae061e5fa669fc24a90543baa53640d4e71e1"},
			{"data/2026/05/03.jsonl", 66131, "e1d26ea054c04771c52a916f6e68a091b1785e5edba03c06fa5e05d4f96e62b8"},
			{"data/2026/05/04.jsonl", 1359746, "c17df81a15db3e5afa8146a31840dc9e8ebd81ddf66bf293e25c77762c81d73d"},
		},
		Convert: convertIREE,
	}
}

// ireeJob is a line of the record: what was read of a job. A job that had not ended yet has more lines later.
type ireeJob struct {
	ID        int64     `json:"job_id"`
	RunID     int64     `json:"run_id"`
	Status    string    `json:"status"`
	Runner    string    `json:"runner_name"`
	Labels    []string  `json:"labels"`
	Created   time.Time `json:"created_at"`
	Started   time.Time `json:"started_at"`
	Completed time.Time `json:"completed_at"`
}

// convertIREE reads lines of JSON. The last one of a job counts.
func convertIREE(file []byte) (c Converted, err error) {
	last, order := map[int64]ireeJob{}, []int64(nil)
	number := 0
	for line := range bytes.Lines(file) {
		number++
		var j ireeJob
		if err := json.Unmarshal(line, &j); err != nil {
			return c, fmt.Errorf("line %d: read a job: %.200w", number, err)
		}
		if why := j.wrong(); why != "" {
			return c, fmt.Errorf("line %d: %s", number, why)
		}
		if _, known := last[j.ID]; !known {
			order = append(order, j.ID)
		}
		last[j.ID] = j
	}
	for _, id := range order {
		j := last[id]
		if why := j.leftOut(); why != "" {
			c.leaveOut(why, 1)
			continue
		}
		c.Jobs = append(c.Jobs, history.Job{
			ID: j.ID, RunID: strconv.FormatInt(j.RunID, 10), Repository: "iree-org/iree", Labels: j.Labels,
			Created: j.Created.UTC(), Started: j.Started.UTC(), Completed: j.Completed.UTC(),
		})
	}
	return c, nil
}

// wrong says in a sentence what no job can be; empty: nothing.
func (j ireeJob) wrong() string {
	switch {
	case j.ID <= 0 || j.RunID <= 0:
		return fmt.Sprintf("job_id is %d, and run_id %d; both are above 0", j.ID, j.RunID)
	case j.Created.IsZero():
		return "created_at is missing"
	case j.Status == "completed" && (j.Started.IsZero() || j.Completed.IsZero()):
		return "the job is completed, and started_at or completed_at is missing"
	case j.Status == "":
		return "status is missing"
	}
	return ""
}

// leftOut is why the job is not part of a history; empty: it is. What a later attempt of a run does not run again has jobs there too, which are created
// with the attempt and began in the earlier one.
func (j ireeJob) leftOut() Reason {
	switch {
	case j.Status != "completed":
		return reasonNoEnd
	case strings.TrimSpace(j.Runner) == "":
		return reasonNoRunner
	case j.Started.Before(j.Created):
		return reasonCopy
	case !j.Completed.After(j.Started):
		return reasonNoTime
	}
	return ""
}
