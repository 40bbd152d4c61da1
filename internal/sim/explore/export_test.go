package explore

import (
	"github.com/remuda-ci/remuda/internal/store"
)

// Effects explores and returns every change of the world that others can see, each
// with the operation that made it. plainly explores without what makes the states fewer.
func Effects(b Bounds, plainly bool) (map[string]bool, Report) {
	x := newExplorer(b, 0)
	x.plainly, x.effects, x.texts = plainly, map[string]bool{}, map[world]string{}
	x.run()
	return x.effects, x.report
}

// NewRows are the rows of a world that is empty.
func NewRows() store.Store {
	x := newExplorer(Bounds{}, 0)
	*x.ports = ports{x: x, busy: map[string]bool{}}
	return store.New(x.ports)
}
