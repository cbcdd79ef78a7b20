package merchant

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"unicode"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// A buyer is found by digests of his document and of his e-mail address, with the digest key of the
// account. A document has few values: a digest without a key could be reversed by trying all.

// digestsOf returns the digests of a document and of an e-mail address, without those that are empty.
func digestsOf(key, document, email string) (list []string) {
	for _, is := range []struct{ kind, value string }{
		{"document", normalDocument(document)}, {"email", normalEmail(email)},
	} {
		if is.value == "" {
			continue
		}
		sum := hmac.New(sha256.New, []byte(key))
		_, _ = sum.Write([]byte(is.kind + "\x00" + is.value)) // a hash never fails
		list = append(list, base64.RawStdEncoding.EncodeToString(sum.Sum(nil)))
	}
	return list
}

// normalDocument returns a document without punctuation. A CNPJ may have letters.
func normalDocument(document string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToUpper(r)
	}, document)
}

func normalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// belongsTo has digests stored by which a record's buyer is found.
func (b *bench) belongsTo(a *account, kind, record, document, email string) {
	if b.order.ErasedAt != 0 {
		return
	}
	for _, digest := range digestsOf(a.digestKey, document, email) {
		one := ledger.Buyer{Owned: ledger.Owned{Book: a.Book, Kind: kind, Record: record}, Digest: digest}
		b.buyers = append(b.buyers, one)
	}
}

// boughtBy has the digests of a charge's buyer stored.
func (b *bench) boughtBy(ch *charge, document *gateway.Document, email string) {
	s := b.order.Subject()
	kind, id := ofOrder, ledger.OrderID(s)
	switch {
	case ledger.SubscriptionID(s) != "":
		kind, id = ofSubscription, ledger.SubscriptionID(s)
	case s.IsSale():
		kind, id = ofSale, strings.ToLower(ch.Books.ID)
	}
	number := ""
	if document != nil {
		number = document.Number
	}
	b.belongsTo(ch.account, kind, id, number, email)
}

// paidTo has the digests of the receiver of a payout stored, if its Pix key is a document or an e-mail
// address.
func (b *bench) paidTo(p *payout, keyType gateway.PixKeyType, key gateway.PixKey) {
	switch keyType {
	case gateway.PixKeyCPF, gateway.PixKeyCNPJ:
		b.belongsTo(p.account, ofPayout, p.Payout.ID, string(key), "")
	case gateway.PixKeyPhone, gateway.PixKeyEVP:
	case gateway.PixKeyEmail:
		b.belongsTo(p.account, ofPayout, p.Payout.ID, "", string(key))
	}
}
