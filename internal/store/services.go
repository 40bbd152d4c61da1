package store

import (
	"context"

	"github.com/remuda-ci/remuda/internal/services/model"
)

// Services are the services of runners in containers: what was last seen of them and decided. DynamoDB has them
// beside the leases: there are few, and one of the replicas writes each of them every minute, as leases are.
var Services = define(Spec[model.Service]{
	Name:       "service",
	Key:        func(v *model.Service) Key { return Key{v.Name} },
	KeyColumns: []string{"name"},
	Version:    func(v *model.Service) *int64 { return &v.Version },
	Upsert:     true,
	Blank:      func(key Key) model.Service { return model.Service{Name: key[0]} },
	SQL:        Table{Name: "services"}, Dynamo: Table{Name: "leases", Prefix: "service/"},
})

// Service reads a service. One that was never written has only its name.
func (s Store) Service(ctx context.Context, name string) (model.Service, error) {
	return get(ctx, s, Services, Key{name})
}

// UpdateService replaces the service whose stored version is v.Version (0: there is none): else ErrConflict.
func (s Store) UpdateService(ctx context.Context, v model.Service) (model.Service, error) {
	return update(ctx, s, Services, v)
}
