package dockerstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/remuda-ci/remuda/internal/safefile"
)

// Store is docker's store on this machine.
type Store struct {
	// Socket is that of docker's daemon.
	Socket string
	// Dir is where its files are: only root may be able to write there.
	Dir string
}

// machine is the content of machineFile.
type machine struct {
	// BootID is the boot in which docker last had nothing that is not known.
	BootID string `json:"bootId"`
	// Images are those that the machine came with, or that its preparation has fetched.
	Images []ownImage `json:"images"`
	// LayersSize is what their layers have, in bytes.
	LayersSize int64 `json:"layersSize"`
}

// ownImage is an image that the machine came with.
type ownImage struct {
	ID   string   `json:"id"`
	Tags []string `json:"tags,omitempty"`
}

const machineFile = "docker-machine.json"

func (s Store) path(name string) string { return filepath.Join(s.Dir, name) }

// machine reads what the machine came with; fs.ErrNotExist: it is not recorded.
func (s Store) machine() (m machine, err error) {
	data, err := safefile.Read(s.path(machineFile))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return machine{}, fmt.Errorf("read which images the machine came with: %w", err)
	}
	return m, nil
}

func (s Store) saveMachine(m machine) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return safefile.Replace(s.path(machineFile), data, 0o600, true)
}

// Known reports whether it is recorded which images the machine came with, and whether docker has had nothing else since, if its daemon
// was not started in this boot.
func (s Store) Known(bootID string) (recorded, settled bool, err error) {
	m, err := s.machine()
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	return err == nil, err == nil && m.BootID == bootID, err
}

// Record remembers the images that docker has now as those of the machine. It is called once in the life of a machine, before its first
// run: later its store may have what runs have left. used says that docker may have any; without that its daemon is not started.
func (s Store) Record(ctx context.Context, bootID string, used bool) error {
	m := machine{BootID: bootID}
	if used {
		e, err := connect(ctx, s.Socket)
		if err != nil {
			return fmt.Errorf("record images: %w", err)
		}
		defer e.close()
		images, err := e.images(ctx)
		if err != nil {
			return fmt.Errorf("record images: %w", err)
		}
		for _, i := range images {
			m.Images = append(m.Images, ownImage{i.ID, i.tags()})
		}
		u, err := e.usage(ctx)
		if err != nil {
			return fmt.Errorf("record images: %w", err)
		}
		m.LayersSize = u.LayersSize
	}
	return s.saveMachine(m)
}

// own is the image of the machine with this id.
func (m machine) own(id string) (ownImage, bool) {
	i := slices.IndexFunc(m.Images, func(o ownImage) bool { return o.ID == id })
	if i < 0 {
		return ownImage{}, false
	}
	return m.Images[i], true
}

// added are the images that the machine did not come with, in their order.
func (m machine) added(images []image) (added []image) {
	for _, i := range images {
		if _, own := m.own(i.ID); !own {
			added = append(added, i)
		}
	}
	return added
}

// addedTags are the names that images of the machine did not come with.
func (m machine) addedTags(images []image) (tags []string) {
	for _, i := range images {
		if own, ok := m.own(i.ID); ok {
			tags = append(tags, slices.DeleteFunc(i.tags(), func(t string) bool { return slices.Contains(own.Tags, t) })...)
		}
	}
	return tags
}

// lostTags are the names that images of the machine came with and do not have, by image. Images that were deleted are not among them.
func (m machine) lostTags(images []image) map[string][]string {
	lost := map[string][]string{}
	for _, i := range images {
		own, _ := m.own(i.ID)
		for _, t := range own.Tags {
			if !slices.Contains(i.tags(), t) {
				lost[i.ID] = append(lost[i.ID], t)
			}
		}
	}
	return lost
}

// leaves are the images that no other one is built on. Docker deletes no image that another is built on.
func leaves(images []image) []image {
	parents := map[string]bool{}
	for _, i := range images {
		parents[i.ParentID] = true
	}
	return slices.DeleteFunc(slices.Clone(images), func(i image) bool { return parents[i.ID] })
}
