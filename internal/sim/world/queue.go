package world

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// QueuePort is the queue as a replica reaches it. It may lose, duplicate, delay and reorder
// messages, and lose its answers.
type QueuePort struct{ w *World }

func (q QueuePort) call(what string, do func() error) error {
	w := q.w
	w.Calls++
	w.Interrupt(what)
	if w.Chance(engine.FaultQueueRefused) {
		return unavailable(what, "throttled")
	}
	if err := do(); err != nil {
		return err
	}
	lost := w.Chance(engine.FaultQueueLost)
	w.Interrupt(what)
	if lost {
		return unavailable(what, "no answer")
	}
	return nil
}

func (q QueuePort) Send(_ context.Context, messages ...lifecycle.Message) error {
	w := q.w
	return q.call("send message", func() error {
		for _, m := range messages {
			w.Tell(w.Who(), "send", m.HostKey)
			w.called("queue: send "+m.HostKey, nil)
			switch {
			case w.Chance(engine.FaultMessageLost):
			case w.Chance(engine.FaultMessageTwice):
				w.After(w.Exp(w.queue.Visibility, 10*w.queue.Visibility), func() { engine.Must(w.queue.Send(engine.Background, m)) })
				engine.Must(w.queue.Send(engine.Background, m))
			case w.Chance(engine.FaultMessageDelayed):
				w.After(w.Exp(w.queue.Visibility, 10*w.queue.Visibility), func() { engine.Must(w.queue.Send(engine.Background, m)) })
			default:
				engine.Must(w.queue.Send(engine.Background, m))
			}
		}
		return nil
	})
}

func (q QueuePort) Receive(_ context.Context, name lifecycle.QueueName, limit int) ([]lifecycle.Delivery, error) {
	var got []lifecycle.Delivery
	err := q.call("receive", func() (err error) {
		got, err = q.w.queue.Receive(engine.Background, name, limit)
		if len(got) > 1 && q.w.Chance(engine.FaultMessageOrder) {
			q.w.Rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		}
		return err
	})
	q.w.emit(Received{got, err})
	if err != nil {
		return nil, err
	}
	return got, nil
}

func (q QueuePort) Delete(_ context.Context, name lifecycle.QueueName, handles ...string) error {
	return q.call("delete messages", func() error {
		q.w.called(fmt.Sprintf("queue: delete %d", len(handles)), nil)
		return q.w.queue.Delete(engine.Background, name, handles...)
	})
}

func (q QueuePort) Return(_ context.Context, name lifecycle.QueueName, handles ...string) error {
	return q.call("return messages", func() error {
		q.w.called(fmt.Sprintf("queue: return %d", len(handles)), nil)
		return q.w.queue.Return(engine.Background, name, handles...)
	})
}
