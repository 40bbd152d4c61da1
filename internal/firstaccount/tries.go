package firstaccount

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"

	"github.com/remuda-ci/remuda/internal/aws"
)

// tries counts what AWS refused, each try of a call for itself: the SDK repeats some calls and tells nothing of it.
type tries struct {
	mu    sync.Mutex
	codes map[string]int // by operation and code
}

// watch is the option of clients.
func (t *tries) watch(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("firstaccount.tries",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleFinalize(ctx, in)
			if code := aws.Code(err); code != "" {
				t.mu.Lock()
				t.codes[awsmiddleware.GetOperationName(ctx)+" "+code]++
				t.mu.Unlock()
			}
			return out, metadata, err
		}), "Retry", middleware.After)
}

// count is how often an operation was refused with a code.
func (t *tries) count(operation, code string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.codes[operation+" "+code]
}

// of lists the refusals of an operation, for people.
func (t *tries) of(operation string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(t.codes)) {
		var name, code string
		if n, _ := fmt.Sscan(key, &name, &code); n == 2 && name == operation {
			parts = append(parts, fmt.Sprintf("%d times %s", t.codes[key], code))
		}
	}
	if len(parts) == 0 {
		return "no try was refused"
	}
	return "refused " + listed(parts)
}
