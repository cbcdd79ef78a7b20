package operations

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/masking"
)

// Once an operation is done or canceled, nothing needs what was sent and received,
// which is personal data: documents, Pix keys, card tokens. The transaction that ends
// an operation erases it, and keeps a digest of the params, by which InsertTx
// recognizes the operation.
//
// A document has only a billion values, and the rest of the params may be known, so a
// plain hash could be reversed by trying all of them. The digest has a key, which is
// in the table of accounts: no one can try a value with the table of operations alone,
// but anyone with both tables can. A key outside the database would prevent that, but
// an outbox that has lost it would no longer recognize its operations.

// erasing are the assignments that erase an operation. Their parameters are what
// [store.remains] returns.
const erasing = `params = 'null', digest = ?, progress = {json}`

// remains returns what stays of an operation's params and progress. The gateway may
// have repeated in an error what it was sent: the client masks documents and the like
// there, but not names, which explain the error.
func (s *store) remains(r *record) (digest, progress string, kept *progress, err error) {
	if digest, err = s.digest(r.params); err != nil {
		return "", "", nil, err
	}
	var sent masking.Sent
	sent.LearnAll(r.params, r.Key)
	kept = r.p.ended(sent.Hide)
	progress, err = kept.encoded()
	return digest, progress, kept, err
}

// digest returns the digest of an operation's params. It does not depend on the order
// of members, which jsonb does not keep.
func (s *store) digest(params []byte) (string, error) {
	canonical := jsontext.Value(params).Clone()
	if err := canonical.Canonicalize(); err != nil {
		return "", fmt.Errorf("operations: the stored operation is not JSON: %w", err)
	}
	sum := hmac.New(sha256.New, []byte(*s.digestKey.Load()))
	_, _ = sum.Write(canonical) // a hash never fails
	return base64.RawStdEncoding.EncodeToString(sum.Sum(nil)), nil
}
