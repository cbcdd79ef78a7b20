package merchant

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// encoded returns a record as it is stored.
func encoded(record any) (string, error) {
	b, err := json.Marshal(record, json.OmitZeroStructFields(true), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return "", fmt.Errorf("merchant: a record can't be encoded: %w", err)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil // PostgreSQL accepts only valid UTF-8
}

func decode(stored string, record any) error {
	if err := json.Unmarshal([]byte(stored), record, jsontext.AllowDuplicateNames(true)); err != nil {
		return fmt.Errorf("merchant: a stored record can't be decoded: %w", err)
	}
	return nil
}
