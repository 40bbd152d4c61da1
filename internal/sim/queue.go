package sim

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// queuePort is the queue as a replica reaches it. It may lose, duplicate, delay and reorder
// messages, and lose its answers.
type queuePort struct{ w *world }

func (q queuePort) call(what string, do func() error) error {
	w := q.w
	w.calls++
	w.interrupt(what)
	if w.chance(FaultQueueRefused) {
		return unavailable(what, "throttled")
	}
	if err := do(); err != nil {
		return err
	}
	lost := w.chance(FaultQueueLost)
	w.interrupt(what)
	if lost {
		return unavailable(what, "no answer")
	}
	return nil
}

func (q queuePort) Send(_ context.Context, messages ...lifecycle.Message) error {
	w := q.w
	return q.call("send message", func() error {
		for _, m := range messages {
			w.tell(w.who(), "send", m.HostKey)
			w.script.called("queue: send "+m.HostKey, nil)
			switch {
			case w.chance(FaultMessageLost):
			case w.chance(FaultMessageTwice):
				w.after(w.exp(w.queue.Visibility, 10*w.queue.Visibility), func() { must(w.queue.Send(background, m)) })
				must(w.queue.Send(background, m))
			case w.chance(FaultMessageDelayed):
				w.after(w.exp(w.queue.Visibility, 10*w.queue.Visibility), func() { must(w.queue.Send(background, m)) })
			default:
				must(w.queue.Send(background, m))
			}
		}
		return nil
	})
}

func (q queuePort) Receive(_ context.Context, name lifecycle.QueueName, limit int) ([]lifecycle.Delivery, error) {
	var got []lifecycle.Delivery
	err := q.call("receive", func() (err error) {
		got, err = q.w.queue.Receive(background, name, limit)
		if len(got) > 1 && q.w.chance(FaultMessageOrder) {
			q.w.rng.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		}
		return err
	})
	q.w.script.received(got, err)
	if err != nil {
		return nil, err
	}
	return got, nil
}

func (q queuePort) Delete(_ context.Context, name lifecycle.QueueName, handles ...string) error {
	return q.call("delete messages", func() error {
		q.w.script.called(fmt.Sprintf("queue: delete %d", len(handles)), nil)
		return q.w.queue.Delete(background, name, handles...)
	})
}

func (q queuePort) Return(_ context.Context, name lifecycle.QueueName, handles ...string) error {
	return q.call("return messages", func() error {
		q.w.script.called(fmt.Sprintf("queue: return %d", len(handles)), nil)
		return q.w.queue.Return(background, name, handles...)
	})
}
