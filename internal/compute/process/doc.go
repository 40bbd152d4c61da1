// Package process is a cloud on this machine: its hosts are agentd processes.
//
// Below the root, which several replicas of controld may share, are
//
//	lock                    held while an order is planned and its directories made
//	draft                   the directory of a host while it is made
//	orders/<token>.json     what an order became; written before its hosts
//	hosts/<instance id>/    one host, from its launch until 24 h after its end
//	    machine.json        type, zone and tags; never changes
//	    agentd.yaml         the configuration of its agentd
//	    init                the script that stands in for systemd
//	    lock                held by the starter of init, until init.pid exists
//	    init.pid            pid, start time and boot id of init
//	    booted              the boot delay is over
//	    agentd.log          what init and agentd print; agentd.log.1 the one before
//	    ending              the host is to end: nothing may start in it
//	    ended               when it ended; only machine.json is left beside it
//
// These files and /proc are the whole state, so a replica can die at any instruction and another continues. A
// host whose launch was cut short before init is pending until its order is made again, Launched finds it, or
// it is terminated.
//
// Init leads a session and process group of its own and starts agentd again unless it exits with a terminal
// code: 0, the host powered itself off, or 78 (EX_CONFIG of sysexits.h), its configuration can never work.
// Then init ends, and the host with it, as a machine without power does. What it leaves running (runners have
// process groups of their own) is ended by the next Describe, List or Terminate, and the host is gone only
// when nothing of it is left.
//
// To a host belongs every process of our own user in init's session and every one that was started with
// REMUDA_INSTANCE_ID=<instance id> in its environment. A process that leaves the session and drops that
// variable escapes; only a cgroup or a real machine could hold it.
package process
