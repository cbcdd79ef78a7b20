package pix

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The ids of the fields of a BR Code.
const (
	idFormat       = "00"
	idInitiation   = "01"
	idAccountFirst = "26" // of the templates for accounts, one of which is Pix
	idAccountLast  = "51"
	idCategory     = "52"
	idCurrency     = "53"
	idAmount       = "54"
	idCountry      = "58"
	idName         = "59"
	idCity         = "60"
	idPostalCode   = "61"
	idAdditional   = "62"
	idChecksum     = "63"
	idSchemeFirst  = "80" // of the templates without a fixed meaning, one of which is the recurrence
	idSchemeLast   = "99"

	idIdentifier  = "00" // in a template: which scheme it belongs to
	idKey         = "01"
	idDescription = "02"
	idURL         = "25"
	idTxID        = "05" // in the additional data
)

// identifier is the scheme of Pix's templates. Letters of either case mean the same.
const identifier = "br.gov.bcb.pix"

// field is one field of a code: a two-digit id, and a value of at most 99
// characters, which may be the text of further fields.
type field struct{ id, value string }

// fields are the fields of a code or a template, in the order in which they stand.
type fields []field //nolint:recvcheck // only set and setTemplate change the list

// parseFields splits text. size returns the length in bytes of a field of n characters.
func parseFields(text string, size func(text string, n int) int) (fields, error) {
	var found fields
	for rest := text; rest != ""; {
		const head = 4
		if len(rest) < head || !digits(rest[:head]) {
			return nil, fmt.Errorf("at byte %d: expected the id and the length of a field, four digits", len(text)-len(rest))
		}
		id := rest[:2]
		n, err := strconv.Atoi(rest[2:head])
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", id, err)
		}
		end := size(rest[head:], n)
		if end < 0 {
			return nil, fmt.Errorf("field %s: the code ends before its %d characters", id, n)
		}
		if _, again := found.get(id); again {
			return nil, fmt.Errorf("field %s: occurs twice", id)
		}
		found = append(found, field{id, rest[head : head+end]})
		rest = rest[head+end:]
	}
	return found, nil
}

// characters returns the number of bytes of the first n characters of text, or -1.
func characters(text string, n int) int {
	end := 0
	for range n {
		_, size := utf8.DecodeRuneInString(text[end:])
		if size == 0 {
			return -1
		}
		end += size
	}
	return end
}

// octets is characters for writers that count bytes.
func octets(text string, n int) int {
	if n > len(text) {
		return -1
	}
	return n
}

// recount counts the characters in the lengths of templates that counted bytes.
func (f fields) recount() {
	for i, each := range f {
		if each.id != idAdditional && (each.id < idAccountFirst || each.id > idAccountLast) && (each.id < idSchemeFirst || each.id > idSchemeLast) {
			continue
		}
		in, err := parseFields(each.value, octets)
		if err != nil {
			continue // of another scheme
		}
		if text, err := in.appendTo(nil); err == nil {
			f[i].value = string(text)
		}
	}
}

func (f fields) get(id string) (string, bool) {
	for _, each := range f {
		if each.id == id {
			return each.value, true
		}
	}
	return "", false
}

func (f fields) value(id string) string {
	value, _ := f.get(id)
	return value
}

// set changes, adds or, with "", removes a field. A new one comes before the
// first with a higher id.
func (f *fields) set(id, value string) {
	at := len(*f)
	for i := len(*f) - 1; i >= 0; i-- {
		switch each := &(*f)[i]; {
		case each.id == id && value == each.value: // also an empty field of the code that was read
			return
		case each.id == id && value == "":
			*f = slices.Delete(*f, i, i+1)
			return
		case each.id == id:
			each.value = value
			return
		case each.id > id:
			at = i
		}
	}
	if value != "" {
		*f = slices.Insert(*f, at, field{id, value})
	}
}

// template returns the template between two ids that belongs to Pix, and its
// id. If there is none, it is nil, and the id is the first that is free.
func (f fields) template(first, last string, size func(string, int) int) (id string, in fields, err error) {
	id = first
	for _, each := range f {
		if each.id < first || each.id > last {
			continue
		}
		in, err = parseFields(each.value, size)
		if err != nil {
			return "", nil, fmt.Errorf("field %s: %w", each.id, err)
		}
		if strings.EqualFold(in.value(idIdentifier), identifier) {
			return each.id, in, nil
		}
		if each.id == id {
			id = next(id)
		}
	}
	return id, nil, nil
}

// ofPix returns f, or if it is nil a new template of Pix with room for more fields.
func (f fields) ofPix(more int) fields {
	if f != nil {
		return f
	}
	return append(make(fields, 0, 1+more), field{idIdentifier, identifier})
}

func next(id string) string {
	n, _ := strconv.Atoi(id)
	return fmt.Sprintf("%02d", n+1)
}

// appendTo appends the text of the fields. It returns an error if a value does
// not fit.
func (f fields) appendTo(b []byte) ([]byte, error) {
	for _, each := range f {
		n := utf8.RuneCountInString(each.value)
		if n > maxValue {
			return nil, fmt.Errorf("field %s has %d characters: at most %d fit", each.id, n, maxValue)
		}
		b = append(b, each.id...)
		b = append(b, byte('0'+n/10), byte('0'+n%10)) //nolint:gosec // at most 99
		b = append(b, each.value...)
	}
	return b, nil
}

const maxValue = 99 // characters

// reais returns an amount in cents as reais: 12.34.
func reais(cents int64) string {
	var buf [24]byte
	b := append(strconv.AppendInt(buf[:0], cents/100, 10), '.')
	return string(append(b, byte('0'+cents%100/10), byte('0'+cents%10)))
}

var errAmount = errors.New("must be an amount in reais with a dot and at most two decimals")

// cents reads an amount in reais: 12.34, 12.3, 12 or 0.
func cents(text string) (int64, error) {
	whole, part, dot := strings.Cut(text, ".")
	if !digits(whole) || len(whole) > 13 || len(part) > 2 || dot && part != "" && !digits(part) {
		return 0, errAmount
	}
	return strconv.ParseInt(whole+(part + "00")[:2], 10, 64)
}

// digits reports whether s consists of decimal digits, and has at least one.
func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// checksum is CRC-16/CCITT-FALSE: polynomial 0x1021, initial value 0xFFFF, no
// reflection.
func checksum(b []byte) uint16 {
	sum := uint16(0xFFFF)
	for _, c := range b {
		sum = sum<<8 ^ checksums[byte(sum>>8)^c]
	}
	return sum
}

// checksums has the checksum of every byte.
var checksums = func() (table [256]uint16) {
	for i := range table {
		sum := uint16(i) << 8
		for range 8 {
			sum = sum<<1 ^ (sum>>15)*0x1021
		}
		table[i] = sum
	}
	return table
}()
