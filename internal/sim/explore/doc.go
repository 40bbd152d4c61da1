// Package explore visits every interleaving of a small fleet: the real
// use-cases of internal/fleet, driven by two replicas over a world of a few
// rows that keep the store's conditions (TestRows), with every choice that this
// world has tried in every order. What the simulator finds by chance in large
// lives is shown here to be absent from small ones.
//
// Time is reduced to whether a threshold has passed: all durations are one
// unit, and the clock stands still until the choice is made that a unit
// passes. The agent is reduced to its contract: it reads its record, and later
// writes its answer to what it read. States differ if anything differs on which
// decisions depend, including what an operation says of its state (op.Stated), and each is
// visited once. The bounds are declared; nothing is cut off silently.
//
// Two things keep the states few and their visits cheap:
//
//   - A step that only reads is put together with the next write of its
//     operation, or made just before another actor's move after which it would
//     have another result (see expand). Whether it would is not estimated from
//     what is read: the step is tried in both worlds. TestLateReads
//     explores with and without this, and compares everything that was done.
//   - What an operation's step does depends on the rows that it looked at and
//     nothing else. It is tried once and then known (see node).
//
// What is covered: with the bounds "everything", two replicas, two requests and
// two hosts in the pool; a release of either run; sweeps one after the other,
// on either replica; a crash of either replica with all that runs on it; and a
// unit of time that passes. All of these come at any time and in any order,
// until a host has had three assignments. The other bounds have less of this,
// and in addition two sweeps at once, two releases, launches, failed
// registrations, lost answers, jobs, callers that ask twice, or more time. Some have hosts that listen before a
// run claims them. There the labels of a runner are set, and GitHub may delete its registration. In some an
// operator drains hosts, or pauses the pool and resumes it. An operation that may meet a pause reads it each
// time, and looks again at any time.
//
// What an operation does to several hosts at once, each by itself, it does here to one after the other, a step each: any order of those effects, and
// any moment for a crash, is one that is covered.
//
// What is not covered: all of these things together in one life. Silence,
// interruptions, holds, other orders, the sweeps of the cloud and of GitHub, old reads
// of the indexes and failures of GitHub are left to the simulator. Each replica
// has one caller's operation and one sweep at a time. A sweep starts only while
// something is due, except where the bounds let it start idle. The replicas share
// one clock. An agent is silent once its record has ended.
package explore
