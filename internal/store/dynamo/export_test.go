package dynamo

// ReadHistoryIn has a question about a host take so many calls at most.
func (s *Store) ReadHistoryIn(calls int) { s.history.reads = calls }
