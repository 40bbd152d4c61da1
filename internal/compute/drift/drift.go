// Package drift compares a launch template with what it should be.
package drift

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Between are the fields in which a stored template differs from what it should be, by name: what is missing,
// different or there beside it. The two types have the same fields, so they are compared by those.
func Between(want *types.RequestLaunchTemplateData, got *types.ResponseLaunchTemplateData) []string {
	wanted, stored := Fields(want), Fields(got)
	for _, path := range toldByEC2 {
		delete(stored, path)
	}
	unpackUserData(wanted)
	unpackUserData(stored)
	differ := map[string]bool{}
	for path, value := range wanted {
		if stored[path] != value {
			differ[field(path)] = true
		}
	}
	for path := range stored {
		if _, ok := wanted[path]; !ok {
			differ[field(path)] = true
		}
	}
	return slices.Sorted(maps.Keys(differ))
}

// Fields are the values that a template sets, by their paths.
func Fields(template any) map[string]string {
	fields := map[string]string{}
	flatten("", reflect.ValueOf(template), fields)
	return fields
}

// toldByEC2 are fields that EC2 adds to an answer although they were not requested.
var toldByEC2 = []string{".MetadataOptions.State", ".MetadataOptions.HttpProtocolIpv6"}

// field is the template's field that a path leads into.
func field(path string) string {
	name := strings.TrimPrefix(path, ".")
	if i := strings.IndexAny(name, ".["); i >= 0 {
		name = name[:i]
	}
	return name
}

// flatten writes every value that is set under its path. What is unset, false,
// empty or 0 is the same as left out, as it is to EC2.
func flatten(path string, v reflect.Value, into map[string]string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			flatten(path, v.Elem(), into)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				flatten(path+"."+f.Name, v.Field(i), into)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			flatten(path+"["+elementName(v.Index(i), i)+"]", v.Index(i), into)
		}
	default:
		if !v.IsZero() {
			into[path] = fmt.Sprint(v.Interface())
		}
	}
}

// elementName makes the order of a list not matter where its elements have a name of their own.
func elementName(v reflect.Value, i int) string {
	if v.Kind() == reflect.String {
		return v.String()
	}
	for _, key := range []string{"Key", "ResourceType", "DeviceName"} {
		f := reflect.Indirect(v).FieldByName(key)
		if f.IsValid() && reflect.Indirect(f).Kind() == reflect.String {
			return reflect.Indirect(f).String()
		}
	}
	return strconv.Itoa(i)
}

// unpackUserData: what is compressed is compared, since another compressor may write the same in another way.
func unpackUserData(fields map[string]string) {
	const path = ".UserData"
	packed, err := base64.StdEncoding.DecodeString(fields[path])
	if err != nil {
		return
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return
	}
	text, err := io.ReadAll(io.LimitReader(r, maxUnpacked))
	if err == nil {
		fields[path] = string(text)
	}
}

// maxUnpacked bounds what a template edited by hand may unfold to; it is more than any of ours could.
const maxUnpacked = 64 << 20
