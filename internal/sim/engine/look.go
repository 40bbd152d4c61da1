package engine

import "time"

// Sight is something that an actor may read: its kind, and its key where there are several.
type Sight struct{ Kind, Key string }

// Look is when an actor read something, and how long it had stalled in its calls until then.
type Look struct {
	At      time.Time
	Stalled time.Duration
}

// Sees notes that the current actor reads something now.
func (e *Engine) Sees(s Sight) { e.Current.looks[s] = Look{e.Now, e.Current.stalled} }

// LastLook is when the actor last read something; zero: never.
func (a *Actor) LastLook(s Sight) Look { return a.looks[s] }

// Stood is how long the current actor was suspended in the call that it makes, which has this name; 0: it was not.
func (e *Engine) Stood(call string) time.Duration {
	if e.Current.stoodIn != call || !e.Current.resumedAt.Equal(e.Now) {
		return 0
	}
	return e.Current.stood
}

// AgeOf is how long ago a look was, less the time for which the actor was suspended since.
func (e *Engine) AgeOf(l Look) time.Duration {
	return e.Now.Sub(l.At) - (e.Current.stalled - l.Stalled)
}
