//go:build goexperiment.jsonv2 && !go1.27

package gateway

// With GOEXPERIMENT=jsonv2 on Go 1.26, the JSON module is an alias of an older
// version in the standard library. That version rejects the functions that write
// empty strings as null, so results could not be encoded. Go 1.27 has a version that
// supports them.
const _ = build_without_GOEXPERIMENT_jsonv2_or_with_Go_1_27
