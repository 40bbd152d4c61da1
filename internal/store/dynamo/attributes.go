package dynamo

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is a row as DynamoDB has it.
type item = map[string]types.AttributeValue

// timeLayout is of one width, so that times sort and compare as text.
const timeLayout = "2006-01-02T15:04:05.000000000Z"

var (
	encoder = attributevalue.NewEncoder(func(o *attributevalue.EncoderOptions) {
		o.TagKey = "json"
		o.EncodeTime = func(t time.Time) (types.AttributeValue, error) {
			if t.IsZero() {
				return &types.AttributeValueMemberNULL{Value: true}, nil
			}
			return timeValue(t), nil
		}
	})
	decoder = attributevalue.NewDecoder(func(o *attributevalue.DecoderOptions) {
		o.TagKey = "json"
		o.DecodeTime.S = func(s string) (time.Time, error) {
			t, err := time.Parse(time.RFC3339Nano, s)
			return t.UTC(), err
		}
		o.DecodeTime.N = func(s string) (time.Time, error) {
			seconds, err := strconv.ParseInt(s, 10, 64)
			return time.Unix(seconds, 0).UTC(), err
		}
	})
)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func timeText(t time.Time) string                { return t.UTC().Format(timeLayout) }
func timeValue(t time.Time) types.AttributeValue { return text(timeText(t)) }

// textOf is a text attribute of an item; empty if it has none.
func textOf(it item, name string) string {
	s, _ := it[name].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// encode makes an item of a row that expires at a time, or never.
func encode(row any, expires time.Time) (item, error) {
	value, err := encoder.Encode(row)
	if err != nil {
		return nil, fmt.Errorf("encode row: %w", err)
	}
	m, ok := value.(*types.AttributeValueMemberM)
	if !ok {
		return nil, fmt.Errorf("encode row: %T is no structure", row)
	}
	prune(m.Value)
	setExpiry(m.Value, expires)
	return m.Value, nil
}

// prune removes the empty values from an item and from the maps in it: an
// empty value is a removed attribute, never "" (docs/design.md#what-is-stored).
func prune(it item) {
	for name, value := range it {
		if pruneValue(value) {
			delete(it, name)
		}
	}
}

// pruneValue reports whether the value itself is empty.
func pruneValue(value types.AttributeValue) bool {
	switch v := value.(type) {
	case *types.AttributeValueMemberNULL:
		return true
	case *types.AttributeValueMemberS:
		return v.Value == ""
	case *types.AttributeValueMemberM:
		prune(v.Value)
		return len(v.Value) == 0
	case *types.AttributeValueMemberL:
		for _, element := range v.Value {
			pruneValue(element)
		}
		return len(v.Value) == 0
	}
	return false
}

func setExpiry(it item, at time.Time) {
	delete(it, expiresAt)
	if at.IsZero() {
		return
	}
	seconds, nano := at.Unix(), at.Nanosecond()
	if nano > 0 {
		it[expiresAtNano] = number(int64(nano))
		seconds++
	}
	it[expiresAt] = number(seconds)
}

// restoreExpiry gives an item its exact time of expiry, which expiresAt has rounded up to a second.
func restoreExpiry(it item) {
	nano, ok := numberOf(it, expiresAtNano)
	if rounded := expiryOf(it); ok && !rounded.IsZero() {
		it[expiresAt] = timeValue(rounded.Add(time.Duration(nano) - time.Second))
	}
}

// expiryOf is when DynamoDB may remove an item; zero if it may not.
func expiryOf(it item) time.Time {
	if seconds, ok := numberOf(it, expiresAt); ok {
		return time.Unix(seconds, 0)
	}
	return time.Time{}
}

// numberOf is a whole number of an item.
func numberOf(it item, name string) (int64, bool) {
	v, _ := it[name].(*types.AttributeValueMemberN)
	if v == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	return n, err == nil
}

func orNull(v types.AttributeValue) types.AttributeValue {
	if v == nil {
		return &types.AttributeValueMemberNULL{Value: true}
	}
	return v
}

// decode makes a value of an item; see decodeInto.
func decode[T any](it item) (v T, err error) {
	if err = decodeInto(it, &v, func() any { return new(T) }); err != nil {
		var none T
		return none, err
	}
	return v, nil
}

// damagedError says that an item is not one that this program wrote.
type damagedError struct{ attribute string }

func (e damagedError) Error() string {
	return "damaged row: wrong type or value in attribute " + e.attribute
}

// attributesOf are the names of the attributes of a row, in order.
func attributesOf(row reflect.Type) []string {
	var names []string
	for _, field := range reflect.VisibleFields(row) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" { // an embedded struct has none
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
