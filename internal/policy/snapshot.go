package policy

import (
	"maps"
	"slices"
	"time"
)

// Snapshot is a fleet at one moment, with all that a scale-down needs to decide:
// what `controld plan` reads and `controld snapshot` writes.
type Snapshot struct {
	Now       time.Time
	Policy    ScaleDown
	Instances []SnapshotInstance
	Runners   []SnapshotRunner
}

// SnapshotInstance is a host of a snapshot.
type SnapshotInstance struct {
	Candidate
	// State is EC2's word for that of the machine.
	State string
}

// exists: no other machine is there to be scaled down.
func (i SnapshotInstance) exists() bool { return i.State == "running" || i.State == "pending" }

// SnapshotRunner is a registration of a snapshot.
type SnapshotRunner struct {
	Runner
	// Listed is false when GitHub answers for it, asked by its id, and leaves it out of the list.
	Listed bool
}

// Plan is what a scale-down decides for the snapshot: the orphans in their
// order, then the hosts of one owner after the other, in the order in which the
// first of each comes. Machines that neither run nor are about to are left out.
func (s Snapshot) Plan() []HostVerdict {
	orphans, owners, hosts := s.phases()
	lists := s.lists()
	ofOwner := map[string][]Candidate{}
	for _, c := range orphans {
		ofOwner[c.Owner] = append(ofOwner[c.Owner], c)
	}
	byName := map[string][]Runner{}
	for owner, cs := range ofOwner {
		maps.Copy(byName, ByHost(cs, lists[owner]))
	}
	verdicts := make([]HostVerdict, 0, len(s.Instances))
	for _, c := range orphans {
		verdicts = append(verdicts, s.Policy.DecideOrphan(c, s.ask(c), byName[c.InstanceID]))
	}
	kept := s.Policy.ActivePeriod(s.Now)
	for _, owner := range owners {
		verdicts = append(verdicts, s.Policy.DecideOwner(hosts[owner], lists[owner], kept, s.Now)...)
	}
	return verdicts
}

// phases are the orphans, and the other hosts by their owners, whose order is that in which they come first.
func (s Snapshot) phases() (orphans []Candidate, owners []string, hosts map[string][]Candidate) {
	hosts = map[string][]Candidate{}
	for _, i := range s.Instances {
		switch {
		case !i.exists():
		case i.Orphan:
			orphans = append(orphans, i.Candidate)
		default:
			if _, known := hosts[i.Owner]; !known {
				owners = append(owners, i.Owner)
			}
			hosts[i.Owner] = append(hosts[i.Owner], i.Candidate)
		}
	}
	return orphans, owners, hosts
}

// lists are the registrations that each owner's list shows. The list of the owner ""
// shows all of them: a host with an unknown owner may be on any list.
func (s Snapshot) lists() map[string][]Runner {
	lists := map[string][]Runner{}
	unowned := slices.ContainsFunc(s.Instances, func(i SnapshotInstance) bool { return i.Owner == "" })
	for _, r := range s.Runners {
		if r.Listed {
			lists[r.Owner] = append(lists[r.Owner], r.Runner)
			if unowned {
				lists[""] = append(lists[""], r.Runner)
			}
		}
	}
	return lists
}

// ask is GitHub's answer for the registration that the host names.
func (s Snapshot) ask(c Candidate) RunnerLookup {
	for i := range s.Runners {
		if r := &s.Runners[i].Runner; r.ID == c.RunnerID && (r.Owner == c.Owner || c.Owner == "") {
			return RunnerLookup{Known: true, Runner: r}
		}
	}
	return RunnerLookup{Known: true}
}
