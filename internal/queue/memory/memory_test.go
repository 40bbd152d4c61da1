package memory_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/queue/memory"
	"github.com/remuda-ci/remuda/internal/queue/queuetest"
)

func TestQueue(t *testing.T) {
	queuetest.Run(t, func(_ *testing.T, o queuetest.Options) queuetest.Service {
		q := memory.New(o.Now)
		q.Logger, q.Visibility, q.Retention = o.Logger, o.Visibility, o.Retention
		return queuetest.Service{Queue: q, SendBody: q.SendBody}
	})
}
