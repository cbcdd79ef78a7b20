package paymentcode

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The ids of the EMV fields that a BR Code uses, by the central bank's BR Code
// manual.
const (
	tagFormat     = "00" // always "01"
	tagInitiation = "01" // "12": to be used once
	tagAccount    = "26" // a template; its fields are below
	tagCategory   = "52" // "0000": none
	tagCurrency   = "53" // "986": real, ISO 4217
	tagAmount     = "54" // decimal reais, point, two decimals
	tagCountry    = "58" // "BR"
	tagName       = "59"
	tagCity       = "60"
	tagAdditional = "62" // a template; its field 05 is the TxID
	tagCRC        = "63"

	tagGUI  = "00" // of tagAccount: names the payment arrangement
	tagKey  = "01" // of tagAccount
	tagURL  = "25" // of tagAccount
	tagTxID = "05" // of tagAdditional

	pixGUI     = "br.gov.bcb.pix"
	noTxID     = "***" // stands for "none" in a dynamic code
	crcHeader  = tagCRC + "04"
	crcLength  = len(crcHeader) + 4
	maxName    = 25
	maxCity    = 15
	maxTxID    = 25
	maxAccount = 77 // of a key or a URL, so that the template fits 99
)

// BRCode is a Pix copy-paste text, the one that the QR picture holds. A dynamic
// one has a URL from which the payer's bank reads the charge, a static one a
// Pix key.
type BRCode struct {
	URL    string // without a scheme; it has precedence over Key
	Key    string
	Once   bool   // to be paid once
	Amount int64  // cents; 0 leaves the amount to the payer
	Name   string // of who is paid
	City   string
	TxID   string // "" is written as "***"
}

// ChargeCode returns the text of the charge that the mock keeps under id.
func ChargeCode(id string, cents int64) string { return payOnce(host+"/v2/"+id, cents) }

// ConsentCode returns the text with which a payer authorises the recurring
// debit, a Pix Automatico, that the mock keeps under id.
func ConsentCode(id string, cents int64) string { return payOnce(host+"/rec/"+id, cents) }

// host is where the payer's bank would read a charge; nothing is served there.
const host = "pix.mock.invalid"

func payOnce(url string, cents int64) string {
	return BRCode{
		URL:    url,
		Once:   true,
		Amount: cents,
		Name:   "GATEWAY MOCK",
		City:   "SAO PAULO",
	}.String()
}

// String writes the text with its check sum. A value that is longer than its
// field is cut, and what is not printable ASCII becomes a question mark, so
// that every BRCode has a text that can be read.
func (c BRCode) String() string {
	var room [maxTLV]byte
	account := appendTLV(room[:0], tagGUI, pixGUI)
	if c.URL != "" {
		account = appendTLV(account, tagURL, clip(c.URL, maxAccount))
	} else {
		account = appendTLV(account, tagKey, clip(c.Key, maxAccount))
	}
	txid := c.TxID
	if txid == "" {
		txid = noTxID
	}

	b := appendTLV(make([]byte, 0, 256), tagFormat, "01")
	if c.Once {
		b = appendTLV(b, tagInitiation, "12")
	}
	b = appendTLV(b, tagAccount, account)
	b = appendTLV(b, tagCategory, "0000")
	b = appendTLV(b, tagCurrency, "986")
	if c.Amount > 0 {
		b = appendTLV(b, tagAmount, appendReais(room[:0], c.Amount))
	}
	b = appendTLV(b, tagCountry, "BR")
	b = appendTLV(b, tagName, clip(c.Name, maxName))
	b = appendTLV(b, tagCity, clip(c.City, maxCity))
	b = appendTLV(b, tagAdditional, appendTLV(room[:0], tagTxID, clip(txid, maxTxID)))
	b = append(b, crcHeader...)
	sum := crc16(b)
	return string(append(b, hex(sum>>12), hex(sum>>8), hex(sum>>4), hex(sum)))
}

// hex returns the last half byte of v as a capital digit.
func hex(v uint16) byte { return "0123456789ABCDEF"[v&0xF] }

// appendReais writes an amount of cents as 12.34.
func appendReais(b []byte, cents int64) []byte {
	b = append(strconv.AppendInt(b, cents/100, 10), '.')
	return append(b, byte('0'+cents%100/10), byte('0'+cents%10))
}

// ParseBRCode reads a Pix copy-paste text and checks its structure and its
// check sum. Fields that BRCode has no place for are passed over.
func ParseBRCode(s string) (BRCode, error) {
	c, err := parseBRCode(s)
	if err != nil {
		return BRCode{}, fmt.Errorf("BR Code: %w", err)
	}
	return c, nil
}

func parseBRCode(s string) (BRCode, error) {
	if err := checkCRC(s); err != nil {
		return BRCode{}, err
	}
	if strings.IndexFunc(s, notPrintable) >= 0 {
		return BRCode{}, errors.New("a character is not printable ASCII")
	}
	fields, err := parseTLV(s)
	if err != nil {
		return BRCode{}, err
	}
	for _, want := range [...][2]string{{tagFormat, "01"}, {tagCurrency, "986"}, {tagCountry, "BR"}} {
		if fields[want[0]] != want[1] {
			return BRCode{}, fmt.Errorf("field %s is not %s", want[0], want[1])
		}
	}
	c := BRCode{Once: fields[tagInitiation] == "12", Name: fields[tagName], City: fields[tagCity]}
	if c.URL, c.Key, err = parseAccount(fields[tagAccount]); err != nil {
		return BRCode{}, err
	}
	if c.Amount, err = parseAmount(fields[tagAmount]); err != nil {
		return BRCode{}, err
	}
	c.TxID, err = parseTxID(fields[tagAdditional])
	return c, err
}

func parseAccount(s string) (url, key string, err error) {
	account, err := parseTLV(s)
	if err != nil {
		return "", "", fmt.Errorf("field %s: %w", tagAccount, err)
	}
	if !strings.EqualFold(account[tagGUI], pixGUI) {
		return "", "", fmt.Errorf("field %s is no Pix account", tagAccount)
	}
	url, key = account[tagURL], account[tagKey]
	if (url == "") == (key == "") {
		return "", "", fmt.Errorf("field %s needs a key or a URL, and not both", tagAccount)
	}
	return url, key, nil
}

// parseAmount returns cents.
func parseAmount(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	reais, cents, found := strings.Cut(s, ".")
	amount, err := strconv.ParseInt(reais+cents, 10, 64)
	if err != nil || !found || strings.Trim(reais, "0123456789") != "" || reais == "" || len(cents) != 2 {
		return 0, fmt.Errorf("field %s is no amount with two decimals", tagAmount)
	}
	return amount, nil
}

func parseTxID(s string) (string, error) {
	additional, err := parseTLV(s)
	if err != nil {
		return "", fmt.Errorf("field %s: %w", tagAdditional, err)
	}
	if txid := additional[tagTxID]; txid != noTxID {
		return txid, nil
	}
	return "", nil
}

func checkCRC(s string) error {
	if len(s) < crcLength || s[len(s)-crcLength:len(s)-4] != crcHeader {
		return fmt.Errorf("it does not end in field %s", tagCRC)
	}
	body, sum := s[:len(s)-4], s[len(s)-4:]
	if want := fmt.Sprintf("%04X", crc16([]byte(body))); !strings.EqualFold(sum, want) {
		return fmt.Errorf("check sum is %s, the text has %q", want, sum)
	}
	return nil
}

// crc16 is CRC-16/CCITT-FALSE: polynomial 0x1021, start 0xFFFF, nothing
// reflected.
func crc16(b []byte) uint16 {
	sum := uint16(0xFFFF)
	for _, c := range b {
		sum = sum<<8 ^ remainders[byte(sum>>8)^c]
	}
	return sum
}

// remainders are those of every byte: a code is written with every response that
// shows its charge, and a page of a list shows a hundred.
var remainders = func() (table [256]uint16) {
	for i := range table {
		sum := uint16(i) << 8
		for range 8 {
			carry := sum >> 15
			sum = sum<<1 ^ carry*0x1021
		}
		table[i] = sum
	}
	return table
}()

func clip(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if notPrintable(r) {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), n)]
}

func notPrintable(r rune) bool { return r < ' ' || r > '~' }
