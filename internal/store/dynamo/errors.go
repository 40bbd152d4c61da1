package dynamo

import (
	"errors"
	"fmt"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// failed is the error of a call to a table. What names a table or a schema that
// is not as it should be says what to do.
func (s *Store) failed(what, table string, err error) error {
	name := *s.table(table)
	switch aws.Code(err) {
	case "ResourceNotFoundException":
		return aws.Refused(what, err, fmt.Sprintf(
			"there is no table %s in %s: run Refresh, or `controld config check --aws` to see what is missing", name, s.client.Options().Region))
	case "ValidationException":
		return aws.Refused(what, err, fmt.Sprintf(
			"table %s is perhaps not as it should be: `controld config check --aws` compares it", name))
	}
	return aws.Wrap(what, err)
}

// logDamaged logs a row of ours that cannot be read, once.
func (s *Store) logDamaged(table, key string, err error) {
	if _, logged := s.damaged.LoadOrStore(table+" "+key, true); !logged {
		s.log.Error("leaving out a row that cannot be read: repair it or delete it", logkey.Table, *s.table(table), logkey.Row, key, logkey.Error, err)
	}
}

// Reasons to give up a call that may succeed at another time.
var (
	errThrottled = errors.New("the table takes no more for now")
	errRaced     = errors.New("others were faster each time")
)
