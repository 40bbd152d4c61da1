// Package inventory lists every key of the configuration, for tests that hold something for each of them: a row of the documentation, a line of an
// example, an effect.
package inventory

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// Key is a key of the configuration that has a value and no keys below it.
type Key struct {
	Path  string // `pools.<name>.reuse`
	value reflect.Value
}

// IsDuration reports whether its value is a length of time.
func (k Key) IsDuration() bool { return k.value.Type() == reflect.TypeFor[time.Duration]() }

// IsNumber reports whether its value is a number. A length of time is one too.
func (k Key) IsNumber() bool { return k.value.CanInt() || k.value.CanFloat() }

// Default is the value of an empty file, as documented and in the examples.
func (k Key) Default() string {
	if k.IsDuration() {
		return k.value.Interface().(time.Duration).String()
	}
	if k.value.Kind() == reflect.Slice {
		return "[" + strings.Trim(fmt.Sprint(k.value.Interface()), "[]") + "]"
	}
	return fmt.Sprint(k.value.Interface())
}

// Keys lists all of them, from the types of package config. An entry of a map, and an item of a list, stands for all of them.
func Keys() []Key { return walk(nil, "", reflect.ValueOf(withEverything())) }

func walk(found []Key, path string, v reflect.Value) []Key {
	switch v.Kind() {
	case reflect.Pointer:
		return walk(found, path, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("yaml")
			if name == "" { // no file has it
				continue
			}
			found = walk(found, strings.TrimPrefix(path+"."+name, "."), v.Field(i))
		}
		return found
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			return walk(found, path+"[]", v.Index(0))
		}
	case reflect.Map:
		entry := "<name>"
		switch v.Type().Elem().Kind() {
		case reflect.Int:
			entry = "<pattern>"
		case reflect.String:
			entry = "<variable>"
		}
		switch {
		case strings.HasSuffix(path, ".images"):
			entry = "<arch>"
		case strings.HasSuffix(path, ".tags"):
			entry = "<key>"
		}
		return walk(found, path+"."+entry, v.MapIndex(v.MapKeys()[0]))
	}
	return append(found, Key{path, v})
}

// withEverything is the defaults, with empty values for what the defaults leave out.
func withEverything() *config.Config {
	c := config.Default()
	var none time.Duration
	c.GRPC.TLS = &config.TLS{}
	c.Page = &config.Page{OIDC: &config.OIDC{}}
	c.Page.OIDC.SetDefaults()
	c.GitHub.Apps = []config.GitHubApp{{}}
	c.Callers.Operators = []config.Operator{{}}
	c.Callers.Repositories = []config.CallerRule{{MaxRuntime: &none}}
	c.Compute.Process.Capacity = map[string]int{"x": 0}
	c.Compute.Process.SpotCapacity = map[string]int{"x": 0}
	c.Compute.Process.Environment = map[string]string{"X": ""}
	ec2 := func() config.EC2 {
		no := false
		return config.EC2{Images: map[string]string{"x": ""}, Tags: map[string]string{"x": ""}, Burstable: &no}
	}
	c.AWS = &config.AWS{EC2: ec2(), Tags: map[string]string{"x": ""}}
	c.AWS.SetDefaults()
	c.ResourceClasses = map[string]config.ResourceClass{"large": c.ResourceClasses["large"]}
	pool := c.Pools[config.DefaultPool]
	pool.MaxRuntime, pool.IdleTime, pool.Maximum = &none, &none, new(0)
	pool.Caches = []config.Cache{{}}
	pool.Caches[0].SetDefaults()
	own := ec2()
	pool.EC2 = &own
	c.Webhooks, pool.Jobs = &config.Webhooks{}, &config.Jobs{}
	pool.Warm = &config.Warm{Schedules: []config.WarmPeriod{{}}}
	pool.Stopped = &config.Stopped{}
	pool.Stopped.SetDefaults()
	pool.Stopped.Schedules = []config.WarmPeriod{{}}
	c.Pools = map[string]config.Pool{config.DefaultPool: pool}
	c.ScaleDown = &config.ScaleDown{Idle: []config.IdlePeriod{{}}}
	c.ScaleDown.SetDefaults()
	c.Cost.Prices, c.Cost.CallPrices = []price.Price{{}}, []price.CallPrice{{}}
	c.Limits.HostsPerRepository, c.Limits.HostsPerOwner = new(0), new(0)
	c.Limits.Budgets = budget.List{{WarnPercent: budget.DefaultWarnPercent}}
	c.Services = map[string]config.Service{"x": {Queue: config.ServiceQueue{PostgREST: &config.PostgREST{Stalled: &config.Stalled{}}}}}
	c.Services["x"].Queue.PostgREST.Stalled.SetDefaults()
	return c
}
