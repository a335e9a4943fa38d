package grammar

import (
	"maps"
	"slices"
	"strings"
)

// formats are the string formats that are held to, each as an expression for the whole text: a part of what the format allows, every text of
// which is valid (RFC 3339 without leap days and seconds, RFC 4122, RFC 5322 addresses without quoting, RFC 3986 with a host). An empty one
// asks for nothing.
var formats = map[string]string{
	"date":      dateText,
	"time":      timeText,
	"date-time": dateText + "T" + timeText,
	"duration":  `P([1-9][0-9]{0,2}D(T[1-9][0-9]?H)?|T[1-9][0-9]{0,2}[HMS]|[1-9][0-9]?[YMW])`,
	"uuid":      `[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`,
	"email":     `[A-Za-z0-9_+-]{1,32}(\.[A-Za-z0-9_+-]{1,31})?@` + hostText,
	"hostname":  hostText,
	"ipv4":      octetText + `(\.` + octetText + `){3}`,
	"ipv6":      `[0-9a-f]{1,4}(:[0-9a-f]{1,4}){7}`,
	"byte":      `([A-Za-z0-9+/]{4}){0,64}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?`,
	"uri":       `https?://` + hostText + `(:[1-9][0-9]{1,3})?(/[A-Za-z0-9._~-]{1,40}){0,8}/?(\?[A-Za-z0-9._~=&-]{1,100})?(#[A-Za-z0-9._~-]{1,40})?`,
	"text":      "", // OpenAPI's and others' hints about what a value means
	"string":    "",
	"password":  "",
	"binary":    "",
	"int32":     "",
	"int64":     "",
	"float":     "",
	"double":    "",
}

const (
	dateText  = `[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))`
	timeText  = `([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])`
	labelText = `[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?`
	hostText  = labelText + `(\.` + labelText + `){1,3}`
	octetText = `(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
)

func formatNames() string {
	names := slices.Sorted(maps.Keys(formats))
	return strings.Join(slices.DeleteFunc(names, func(s string) bool { return formats[s] == "" }), ", ")
}

// parent is the path of the schema that a keyword's value belongs to.
func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }
