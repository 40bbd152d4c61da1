package explore

// expandPlainly is expand without what makes the states fewer: every step is a
// move, also one that only reads, an operation may start and do nothing yet,
// an agent has read before it answers, and a crash comes at any time. It is
// what expand is measured against, for bounds that are small enough.
func (x *explorer) expandPlainly(s *state) {
	w := s.crowded(s.world)
	for i, n := range s.ops {
		if n == nil {
			continue
		}
		for _, lose := range []bool{false, true} {
			out := x.step(n, &w, lose)
			after := *s
			after.world, after.ops[i] = out.on(s.world), out.next
			switch {
			case !lose:
				x.movePlainly(s, after, "step", n.kind.name)
			case out.lost && s.used.lost < x.most.lost:
				after.used.lost++
				x.movePlainly(s, after, "lose", "the answer to "+n.kind.name)
			}
		}
	}
	for _, k := range x.kinds {
		after := *s
		if i := x.starts(s, &after, k, -1); i >= 0 {
			after.ops[i] = k.start
			x.movePlainly(s, after, "start", k.name)
		}
	}
	for host := range maxHosts {
		for failure, read := range x.fails(s, x.readings(&s.world, host)) {
			if read != 0 {
				after := *s
				after.used.failures += uint8(failure)
				after.world[agentCell+cell(host)] = read
				x.movePlainly(s, after, "read", hostKey(host))
			}
		}
		x.agentMoves(s, host)
		x.forgets(s, host)
	}
	x.orders(s)
	x.passes(s)
	if s.used.crashes < x.most.crashes {
		for i := range places {
			if s.ops[i] != nil {
				x.crashes(s, *s, i)
			}
		}
	}
}

func (x *explorer) movePlainly(from *state, s state, kind, what string) {
	x.doing(kind, what)
	x.report.Choices[kind]++
	x.visit(from, s)
}

// shown is all of a world that operations can see.
func (x *explorer) shown(w world) string {
	for c := agentCell; c < agentCell+maxHosts; c++ {
		w[c] = 0
	}
	if known, ok := x.texts[w]; ok {
		return known
	}
	var all []byte
	for c := range clockCell {
		all = append(append(all, x.values.all[w[c]].text.meaning(instant(w[clockCell]).Sub(epoch))...), '|')
	}
	x.texts[w] = string(all)
	return x.texts[w]
}
