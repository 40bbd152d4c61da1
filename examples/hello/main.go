// Command hello greets the name in its argument. It is the program that examples/workflows/go-build.yml builds and tests.
package main

import (
	"os"

	"example.com/hello/greet"
)

func main() {
	name := "world"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	os.Stdout.WriteString(greet.Hello(name) + "\n")
}
