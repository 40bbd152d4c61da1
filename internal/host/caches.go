package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host/cachestore"
	"github.com/remuda-ci/remuda/internal/host/gitmirror"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/tree"
)

// cachesDir is the store of caches: see package cachestore. Jobs cannot enter it.
const cachesDir = "caches"

// cacheStore opens the store; nil if the host keeps no caches, or cannot.
func (h *Host) cacheStore() *cachestore.Store {
	if len(h.directories()) == 0 {
		return nil
	}
	mechanism, owner := h.layout.views()
	s, err := cachestore.New(cachestore.Options{
		Dir: h.path(cachesDir), Owner: owner, BootID: h.bootID, Mechanism: mechanism, MinimumFree: h.o.MinimumFree, MinimumFreeFiles: h.o.MinimumFreeFiles,
		Fill: h.fillCache, Lender: h.lender(), Logger: h.log.Named("caches"),
	})
	if err != nil {
		h.log.Error("this host keeps no caches", logkey.Error, err)
	}
	return s
}

// directories are the caches that are directories of jobs: all but that of docker, which no run has a view of.
func (h *Host) directories() []cache.Spec {
	return slices.DeleteFunc(slices.Clone(h.o.Caches), func(s cache.Spec) bool { return s.Holds == cache.HoldsDocker })
}

// attachCommand is what gives the jobs of an assignment their views of the caches, before the listener starts; nil for nothing. No job fails for it.
func (h *Host) attachCommand(a agent.Assignment) []string {
	if len(h.directories()) == 0 || a.CachesOf == "" {
		return nil
	}
	args := []string{h.o.Program, "attach", "--config", h.o.Config, "--assignment", strconv.FormatInt(a.Number, 10), "--of", a.CachesOf}
	if len(a.DropCaches) > 0 {
		args = append(args, "--drop", strings.Join(a.DropCaches, ","))
	}
	return args
}

// AttachNow gives the jobs of an assignment their views of the caches of a repository ("owner/name") or of an owner. A cache that cannot be attached
// is left out. The caches with the keys in drop are deleted before.
func (h *Host) AttachNow(ctx context.Context, assignment int64, of string, drop []string) error {
	s := h.cacheStore()
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, h.layout.attachLimit())
	defer cancel()
	names, err := s.Attach(ctx, assignment, h.layout.home(), h.cachesOf(of), drop)
	h.log.Info("caches attached", logkey.Assignment, assignment, logkey.Caches, names)
	return err
}

// cachesOf are the caches that the runs of a repository, or of an owner, have on this host.
func (h *Host) cachesOf(of string) (caches []cachestore.Cache) {
	for _, spec := range h.directories() {
		key := spec.Key(of)
		if key == "" {
			continue
		}
		c := cachestore.Cache{Key: key, Name: spec.Name, Size: spec.Size, Keep: spec.KeepFor()}
		switch spec.Holds {
		case cache.HoldsTools:
			c.Tools, c.ImageDir = true, imageTools
		case cache.HoldsActions:
			c.ReadOnly, c.ImageDir = true, imageArchives
		case cache.HoldsGit:
			c.ReadOnly, c.Connected = true, true
		}
		for _, path := range spec.Directories() {
			c.Targets = append(c.Targets, h.inHome(path))
		}
		caches = append(caches, c)
	}
	return caches
}

// inHome is a path of a cache ("~/…") on this host.
func (h *Host) inHome(path string) string { return h.layout.home() + path[1:] }

// Where GitHub's own images have the tools of setup actions and the archives of actions. An image of a host may have some there too: they are below
// those that runs have added.
const (
	imageTools    = "/opt/hostedtoolcache"
	imageArchives = "/opt/actionarchivecache"
)

// cacheVariables tell the runner and setup actions where the caches of an assignment are that the runner knows of. Without them tools are in the
// runner's work directory. The runner takes the first that is set of RUNNER_TOOL_CACHE, RUNNER_TOOLSDIRECTORY and AGENT_TOOLSDIRECTORY (actions/runner,
// src/Runner.Common/HostContext.cs, GetDirectory). Without AGENT_TOOLSDIRECTORY setup-python takes /opt/hostedtoolcache, whatever the runner says
// (actions/setup-python, src/setup-python.ts).
//
// git takes the template of new repositories from GIT_TEMPLATE_DIR, and warns of one that is not there (git-init(1)). A mirror that is deleted between
// this and the attachment costs a warning.
//
// The runner looks for archives in ACTIONS_RUNNER_ACTION_ARCHIVE_CACHE if that is a directory (src/Runner.Worker/ActionManager.cs).
func (h *Host) cacheVariables(a agent.Assignment) (variables []string) {
	for _, spec := range h.o.Caches {
		if spec.Key(a.CachesOf) == "" {
			continue
		}
		switch spec.Holds {
		case cache.HoldsTools:
			dir := h.inHome(cache.ToolsPath)
			variables = append(variables, "RUNNER_TOOL_CACHE="+dir, "AGENT_TOOLSDIRECTORY="+dir)
		case cache.HoldsActions:
			variables = append(variables, "ACTIONS_RUNNER_ACTION_ARCHIVE_CACHE="+h.inHome(cache.ActionsPath))
		case cache.HoldsGit:
			if s := h.cacheStore(); s != nil && s.Has(spec.Key(a.CachesOf)) && !slices.Contains(a.DropCaches, spec.Key(a.CachesOf)) {
				variables = append(variables, "GIT_TEMPLATE_DIR="+filepath.Join(h.inHome(cache.GitPath), gitmirror.Template))
			}
		}
	}
	return variables
}

// lender is the mirror from which repositories of jobs read objects; empty: the host has none.
func (h *Host) lender() string {
	if slices.ContainsFunc(h.o.Caches, func(s cache.Spec) bool { return s.Holds == cache.HoldsGit }) {
		return h.inHome(cache.GitPath)
	}
	return ""
}

// fillCache adds to a cache that jobs only read what this host fetches for it.
func (h *Host) fillCache(ctx context.Context, name, dir string, below cachestore.Below) (cachestore.Filled, error) {
	for _, spec := range h.o.Caches {
		switch {
		case spec.Name != name:
		case spec.Holds == cache.HoldsGit:
			return h.fetchMirror(ctx, spec, dir, below.Dirs)
		case spec.Holds == cache.HoldsActions:
			added, err := h.fetchArchives(ctx, dir, below.Has)
			return cachestore.Filled{Added: added}, err
		}
	}
	return cachestore.Filled{}, nil
}

// cachesToKeep are the names of the caches that the clean-up under way keeps. Without the file of its start it keeps none.
func (h *Host) cachesToKeep() []string {
	start, err := h.task(taskClean).readStart()
	if err != nil || start == nil || start.KeepCaches == "" {
		return nil
	}
	return strings.Split(start.KeepCaches, ",")
}

// settleCaches ends the views of the last run before the host is verified. It deletes them unless some are to be kept and there is room for that.
func (h *Host) settleCaches(keep []string) (kept []string, err error) {
	s := h.cacheStore()
	if s == nil {
		return nil, h.emptyCaches()
	}
	if len(keep) > 0 {
		if err := errors.Join(s.Hide(), s.Trim(keep)); err != nil {
			return nil, err
		}
	} else if err := s.Discard(); err != nil {
		return nil, err
	}
	if err := s.Evict(time.Now()); err != nil {
		return nil, err
	}
	if err := h.checkDisk(); err != nil && len(keep) > 0 {
		h.log.Warn("caches not kept: there is no room", logkey.Error, err)
		return nil, s.Discard()
	}
	return keep, nil
}

// emptyCaches deletes what a configuration with caches has left. The directory may be a volume of its own, which stays.
func (h *Host) emptyCaches() error {
	if missing(h.path(cachesDir)) {
		return nil
	}
	return tree.Clear(h.path(cachesDir), tree.Owner{UID: os.Geteuid(), GID: os.Getegid()}, 0o700)
}

// commitCaches makes what the last run has left in the caches of these names the caches. The host has been verified: nothing of the run is left. What cannot be
// kept is deleted, and only if that fails is the host not clean.
func (h *Host) commitCaches(ctx context.Context, assignment int64, keep []string) error {
	s := h.cacheStore()
	ctx, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	outcomes, err := s.Commit(ctx, assignment, keep)
	for _, o := range outcomes {
		h.log.Info("cache settled", logkey.Cache, o.Name, logkey.CacheKey, o.Key, logkey.Kept, o.Committed, logkey.Reason, o.Reason, logkey.Bytes, o.Bytes)
	}
	if err != nil {
		h.log.Error("caches not kept", logkey.Error, err)
		return s.Discard()
	}
	return s.Evict(time.Now()) // it may be one too many now, and the report is to have all
}

// commitLimit is how long a commit may take. A release has 120 s by default, and a host that is not clean by then is ended.
const commitLimit = time.Minute

// verifyCaches compares the caches with what was committed, once in each boot. Those that it does not come to are verified when they are next used.
func (h *Host) verifyCaches(ctx context.Context) {
	s := h.cacheStore()
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, verifyCachesLimit)
	defer cancel()
	err := h.checkCaches()
	if err == nil {
		err = s.Discard() // of the boot before
	}
	if err == nil {
		err = s.Verify(ctx)
	}
	if err != nil {
		h.log.Warn("caches not verified", logkey.Error, err)
	}
}

// verifyCachesLimit leaves the rest of the preparation half of its time.
const verifyCachesLimit = layOutLimit / 2

// heldCaches is what the host has of caches, for the report.
type heldCaches struct {
	at    time.Time // of the clean-up after which it was read
	read  bool
	list  cache.List
	bytes int64
}

// readHeldCaches reads it once after each clean-up: between two nothing changes.
func (h *Host) readHeldCaches(cleanedAt time.Time) {
	if len(h.o.Caches) == 0 || h.held.read && h.held.at.Equal(cleanedAt) {
		return
	}
	h.held = heldCaches{at: cleanedAt, read: true}
	held, err := h.listCaches()
	if err != nil {
		h.log.Warn("caches not listed", logkey.Error, err)
		h.held.read = false
		return
	}
	for _, c := range held {
		h.held.bytes += c.Bytes
	}
	h.held.list = cache.ListOf(held...)
}

func (h *Host) listCaches() (held []cache.Held, err error) {
	if _, ok := cache.Docker(h.o.Caches); ok {
		return h.heldImages()
	}
	s := h.cacheStore()
	if s == nil {
		return nil, nil
	}
	all, err := s.Held()
	for _, c := range all {
		held = append(held, cache.Held{Key: c.Key, Bytes: int64(c.Bytes), CommittedAt: c.CommittedAt})
	}
	return held, err
}

// views of a host with units are mounts: a job of its user cannot undo or replace them.
func (l *unitLayout) views() (cachestore.Mechanism, tree.Owner) {
	return cachestore.Overlay{}, tree.Owner{UID: l.o.UID, GID: l.o.GID}
}

func (l *unitLayout) home() string { return l.o.Home }

// attachLimit is less than what the start of a unit may take, which waits for it.
func (l *unitLayout) attachLimit() time.Duration { return 3 * time.Second }

func (l *groupLayout) views() (cachestore.Mechanism, tree.Owner) { return cachestore.Copy{}, self() }
func (l *groupLayout) home() string                              { return l.h.path("home") }
func (l *groupLayout) attachLimit() time.Duration                { return time.Minute }

// checkCaches says why the machine can keep no caches; nil if it can, or is to keep none.
func (h *Host) checkCaches() error {
	if len(h.directories()) == 0 || h.o.Systemd == nil {
		return nil
	}
	if err := os.MkdirAll(h.path(cachesDir), 0o700); err != nil {
		return err
	}
	if err := cachestore.TryOverlay(h.path(cachesDir)); err != nil {
		return fmt.Errorf("overlayfs does not work in %s: %w", h.path(cachesDir), err)
	}
	return nil
}
