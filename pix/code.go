package pix

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrChecksum means that the code's checksum does not match its text: a part of
// it was lost or changed, for example when it was copied.
var ErrChecksum = errors.New("pix: the checksum does not match the code")

// Code is the content of a Pix copy-paste code.
//
// A static code has a Key, a dynamic one the URL of a charge. The code of a Pix
// Automatico has a RecurrenceURL; with a URL too, the payer pays the first
// charge and authorizes the recurrence in one step (journey 3 of the Central
// Bank's manual), without one the payer only authorizes it (journey 2).
//
// Decode keeps the fields that Code does not name, and Encode writes them again.
type Code struct {
	Key           string // the receiver's Pix key; "" in a dynamic code
	URL           string // of the charge, without https://; "" in a static code
	RecurrenceURL string // of the recurrence, without https://; "" without one

	// Amount is in cents of real; 0 if the code has none. The amount of a
	// dynamic code is informational: the payer pays what the URL returns.
	Amount int64

	Name        string // of the receiver, at most 25 characters; required
	City        string // of the receiver, at most 15 characters; required
	PostalCode  string // of the receiver; may be ""
	Description string // for the payer, of a static code; may be ""

	// TxID identifies the payment to the receiver: 1 to 25 letters and digits. It
	// is "" if the code has none ("***"), as is usual for dynamic codes.
	TxID string

	// Once reports that the code can be paid once only.
	Once bool

	read fields // of the code that was decoded
	txID string
}

// Decode reads a Pix copy-paste code. Spaces around it are ignored. It returns
// [ErrChecksum] if a part of the code was lost or changed, and an error that
// names the field if the text is no BR Code for Pix.
func Decode(text string) (*Code, error) {
	text = strings.TrimSpace(text)
	if err := verify(text); err != nil {
		return nil, err
	}
	c, err := decode(text, characters)
	if err != nil && utf8.RuneCountInString(text) < len(text) {
		// Some writers count the bytes of letters with accents.
		if counted, failed := decode(text, octets); failed == nil {
			counted.read.recount()
			return counted, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("pix: %w", err)
	}
	return c, nil
}

// verify checks the last field of a code, the checksum of what precedes it.
func verify(text string) error {
	const field = idChecksum + "04"
	at := len(text) - len("ABCD")
	if at < len(field) || !strings.HasPrefix(text, idFormat) {
		return errors.New(`pix: the text is no BR Code: it must begin with "00" and end with a checksum`)
	}
	sum, err := strconv.ParseUint(text[at:], 16, 16)
	if err != nil || text[at-len(field):at] != field || uint16(sum) != checksum([]byte(text[:at])) {
		return ErrChecksum
	}
	return nil
}

func decode(text string, size func(string, int) int) (*Code, error) {
	all, err := parseFields(text, size)
	if err != nil {
		return nil, err
	}
	if last := all[len(all)-1]; last.id != idChecksum {
		return nil, fmt.Errorf("field %s: covers the checksum, so its length is wrong", last.id)
	}
	_, account, err := all.template(idAccountFirst, idAccountLast, size)
	if err != nil {
		return nil, err
	}
	_, recurrence, err := all.template(idSchemeFirst, idSchemeLast, size)
	if err != nil {
		return nil, err
	}
	additional, err := parseFields(all.value(idAdditional), size)
	if err != nil {
		return nil, fmt.Errorf("field %s: %w", idAdditional, err)
	}
	txID := additional.value(idTxID)
	if txID == noTxID {
		txID = ""
	}
	c := &Code{
		Key: account.value(idKey), URL: account.value(idURL), Description: account.value(idDescription),
		RecurrenceURL: recurrence.value(idURL),
		Name:          all.value(idName), City: all.value(idCity), PostalCode: all.value(idPostalCode),
		TxID: txID, Once: all.value(idInitiation) == payOnce,
		read: all, txID: txID,
	}
	if c.Key == "" && c.URL == "" && c.RecurrenceURL == "" {
		return nil, errors.New("the code has no Pix key, charge or recurrence: it belongs to another scheme")
	}
	if amount, has := all.get(idAmount); has {
		if c.Amount, err = cents(amount); err != nil {
			return nil, fmt.Errorf("field %s %q: %w", idAmount, amount, err)
		}
	}
	return c, nil
}

const (
	payOnce   = "12"
	real      = "986"
	noTxID    = "***"
	noneGiven = "0000" // the merchant category
)

// Encode returns the copy-paste code. It returns an error that names the member
// if one is missing or too long.
func (c *Code) Encode() (string, error) {
	if err := c.check(); err != nil {
		return "", err
	}
	all := slices.Clone(c.read)
	if all == nil {
		all = append(make(fields, 0, 12), // all that a code can have
			field{idFormat, "01"}, field{idCategory, noneGiven}, field{idCurrency, real}, field{idCountry, "BR"})
	}
	if (all.value(idInitiation) == payOnce) != c.Once {
		all.set(idInitiation, choose(c.Once, payOnce))
	}
	if err := c.setTemplates(&all); err != nil {
		return "", fmt.Errorf("pix: %w", err)
	}
	if said, err := cents(all.value(idAmount)); err != nil || said != c.Amount {
		all.set(idAmount, choose(c.Amount > 0, reais(c.Amount)))
	}
	all.set(idName, c.Name)
	all.set(idCity, c.City)
	all.set(idPostalCode, c.PostalCode)
	all.set(idChecksum, "")
	b, err := all.appendTo(make([]byte, 0, 256))
	if err != nil {
		return "", fmt.Errorf("pix: %w", err)
	}
	b = append(b, idChecksum+"04"...)
	sum := checksum(b)
	return string(append(b, hex(sum>>12), hex(sum>>8), hex(sum>>4), hex(sum))), nil
}

// hex returns the last four bits of v as an uppercase hexadecimal digit.
func hex(v uint16) byte { return "0123456789ABCDEF"[v&0xF] }

// choose returns value if it is wanted, and "" otherwise.
func choose(wanted bool, value string) string {
	if wanted {
		return value
	}
	return ""
}

// setTemplates writes the account, the recurrence and the additional data.
func (c *Code) setTemplates(all *fields) error {
	id, account, err := all.template(idAccountFirst, idAccountLast, characters)
	if err != nil {
		return err
	}
	if account != nil || c.Key != "" || c.URL != "" || c.read == nil {
		account = account.ofPix(3)
		account.set(idKey, c.Key)
		account.set(idDescription, c.Description)
		account.set(idURL, c.URL)
		if err := all.setTemplate(id, account); err != nil {
			return err
		}
	}
	id, recurrence, err := all.template(idSchemeFirst, idSchemeLast, characters)
	switch {
	case err != nil:
		return err
	case c.RecurrenceURL != "":
		recurrence = recurrence.ofPix(1)
		recurrence.set(idURL, c.RecurrenceURL)
		err = all.setTemplate(id, recurrence)
	case recurrence != nil:
		all.set(id, "")
	}
	if err != nil {
		return err
	}
	additional, err := parseFields(all.value(idAdditional), characters)
	if err != nil {
		return err
	}
	if c.TxID != c.txID || c.read == nil {
		additional.set(idTxID, cmp.Or(c.TxID, noTxID))
	}
	return all.setTemplate(idAdditional, additional)
}

func (f *fields) setTemplate(id string, in fields) error {
	var buf [maxValue]byte
	text, err := in.appendTo(buf[:0])
	if err != nil {
		return fmt.Errorf("field %s: %w", id, err)
	}
	f.set(id, string(text))
	return nil
}

func (c *Code) check() error {
	switch {
	case c.Key == "" && c.URL == "" && c.RecurrenceURL == "":
		return errors.New("pix: Code.Key: a code needs a Key, a URL or a RecurrenceURL")
	case c.Key != "" && c.URL != "":
		return errors.New("pix: Code.Key: must be empty in a code with a URL")
	case strings.Contains(c.URL, "://"):
		return errors.New("pix: Code.URL: must not contain the scheme: write pix.example.com/v2/…")
	case strings.Contains(c.RecurrenceURL, "://"):
		return errors.New("pix: Code.RecurrenceURL: must not contain the scheme: write pix.example.com/rec/…")
	case c.Amount < 0:
		return errors.New("pix: Code.Amount: must not be negative")
	case c.TxID != "" && (len(c.TxID) > 25 || !word(c.TxID)) && c.TxID != c.txID:
		return errors.New("pix: Code.TxID: must have 1 to 25 letters and digits")
	}
	for _, m := range []struct {
		name, value string
		most        int
	}{{"Name", c.Name, 25}, {"City", c.City, 15}} {
		if n := utf8.RuneCountInString(m.value); n == 0 || n > m.most {
			return fmt.Errorf("pix: Code.%s: must have 1 to %d characters", m.name, m.most)
		}
	}
	return nil
}

func word(s string) bool {
	for i := range len(s) {
		if b := s[i]; (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'z') {
			return false
		}
	}
	return true
}
