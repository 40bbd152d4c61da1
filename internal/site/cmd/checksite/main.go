// Command checksite checks the site of the documents in a directory, as part of make site. It is run at the root of the repository.
package main

import (
	"fmt"
	"os"

	"github.com/remuda-ci/remuda/internal/site"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "checksite:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("one argument is needed: the directory of the site")
	}
	found, err := site.Site{Files: os.DirFS(args[0]), Tree: os.DirFS(".")}.Check()
	if err != nil {
		return err
	}
	for _, problem := range found.Problems {
		fmt.Println(problem)
	}
	if n := len(found.Problems); n > 0 {
		return fmt.Errorf("%d problems in %s, of %d links on %d pages", n, args[0], found.Links, found.Pages)
	}
	fmt.Printf("%s: %d pages, and all %d links lead somewhere\n", args[0], found.Pages, found.Links)
	return nil
}
