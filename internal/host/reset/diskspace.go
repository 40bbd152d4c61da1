package reset

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// diskSpace is what is free on a file system: bytes and files. totalFiles is 0 on one that does not count files.
type diskSpace struct{ bytes, files, totalFiles uint64 }

func diskSpaceAt(path string) (diskSpace, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return diskSpace{}, fmt.Errorf("read free space of %s: %w", path, err)
	}
	return diskSpace{bytes: st.Bavail * uint64(st.Bsize), files: st.Ffree, totalFiles: st.Files}, nil
}

func (p Plan) checkDiskSpace(d *Findings) {
	for _, path := range p.runDirs() {
		free, err := diskSpaceAt(path)
		if d.addErr(err) {
			continue
		}
		if free.bytes < p.MinimumFree {
			d.add("%d MiB are free for %s, %d are needed: take a larger disk, or ask for less", free.bytes>>20, path, p.MinimumFree>>20)
		}
		if free.totalFiles > 0 && free.files < p.MinimumFreeInodes {
			d.add("%d more files fit on the disk of %s, %d are needed: make its file system with more inodes, or ask for less",
				free.files, path, p.MinimumFreeInodes)
		}
	}
}
