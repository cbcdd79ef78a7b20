//go:build goexperiment.jsonv2 && !go1.27

package gateway

// With GOEXPERIMENT=jsonv2 on Go 1.26 the JSON module stands for an older
// version in the standard library that ignores the tag option "embed", so
// members unknown to this package would be lost. Go 1.27 has the right version.
const _ = build_without_GOEXPERIMENT_jsonv2_or_with_Go_1_27
