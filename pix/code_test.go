package pix_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/pix"
)

// The samples of the Central Bank's BR Code and Pix manuals.
const (
	staticSample  = text
	dynamicSample = "00020101021226700014br.gov.bcb.pix2548pix.example.com/8b3da2f39a4140d1a91abd93113bd441" +
		"5204000053039865802BR5913Fulano de Tal6008BRASILIA62070503***630464E4"
	everyFieldSample = "00020104141234567890123426580014BR.GOV.BCB.PIX0136123e4567-e12b-12d1-a456-426655440000" +
		"27300012BR.COM.OUTRO011001234567895204000053039865406123.455802BR5917NOME DO RECEBEDOR6008BRASILIA" +
		"61087007490062190515RP12345678-201980390012BR.COM.OUTRO01190123.ABCD.3456.WXYZ6304AD38"
)

const (
	chargeURL     = "pix.example.com/v2/8b3da2f39a4140d1a91abd93113bd441"
	recurrenceURL = "pix.example.com/rec/2353c790eefb11eaadc10242ac120002"
)

func withChecksum(code string) string {
	code += "6304"
	return fmt.Sprintf("%s%04X", code, pix.Checksum(code))
}

func TestPublishedCodes(t *testing.T) {
	t.Parallel()
	const key = "123e4567-e12b-12d1-a456-426655440000"
	for name, tc := range map[string]struct {
		code string
		want pix.Code
	}{
		"static": {staticSample, pix.Code{Key: key, Name: "Fulano de Tal", City: "BRASILIA"}},
		"dynamic": {dynamicSample, pix.Code{
			URL: "pix.example.com/8b3da2f39a4140d1a91abd93113bd441", Name: "Fulano de Tal", City: "BRASILIA", Once: true,
		}},
		"every field, two schemes": {everyFieldSample, pix.Code{
			Key: key, Amount: 12345, Name: "NOME DO RECEBEDOR", City: "BRASILIA", PostalCode: "70074900", TxID: "RP12345678-2019",
		}},
		"journey 3": {withChecksum("00020101021226730014br.gov.bcb.pix2551" + chargeURL + "52040000530398654041.005802BR" +
			"5913Fulano de Tal6008BRASILIA62070503***80740014br.gov.bcb.pix2552" + recurrenceURL), pix.Code{
			URL: chargeURL, RecurrenceURL: recurrenceURL, Amount: 100, Name: "Fulano de Tal", City: "BRASILIA", Once: true,
		}},
		"journey 2": {withChecksum("00020126180014br.gov.bcb.pix5204000053039865802BR" +
			"5913Fulano de Tal6008BRASILIA62070503***80740014br.gov.bcb.pix2552" + recurrenceURL), pix.Code{
			RecurrenceURL: recurrenceURL, Name: "Fulano de Tal", City: "BRASILIA",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := pix.Decode(" " + tc.code + "\n")
			require.NoError(t, err)
			assert.Equal(t, tc.want, members(got))
			encoded, err := got.Encode()
			require.NoError(t, err)
			assert.Equal(t, tc.code, encoded)
		})
	}
}

// members returns a copy without what Decode keeps for Encode.
func members(c *pix.Code) pix.Code {
	return pix.Code{
		Key: c.Key, URL: c.URL, RecurrenceURL: c.RecurrenceURL, Amount: c.Amount, Name: c.Name, City: c.City,
		PostalCode: c.PostalCode, Description: c.Description, TxID: c.TxID, Once: c.Once,
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code pix.Code
		want string
	}{
		"static": {
			pix.Code{Key: "+5561912345678", Amount: 1, Name: "Ana", City: "RIO", Description: "a mug", TxID: "order17", PostalCode: "22240003"},
			"000201" + "26450014br.gov.bcb.pix0114+55619123456780205a mug" + "52040000" + "5303986" + "54040.01" + "5802BR" + "5903Ana" +
				"6003RIO" + "610822240003" + "62110507order17",
		},
		"dynamic": {
			pix.Code{URL: chargeURL, Name: "Ana", City: "RIO", Once: true, Amount: 100_000_000},
			"000201010212" + "26730014br.gov.bcb.pix2551" + chargeURL + "52040000" + "5303986" + "54101000000.00" + "5802BR" + "5903Ana" +
				"6003RIO" + "62070503***",
		},
		"recurrence alone": {
			pix.Code{RecurrenceURL: recurrenceURL, Name: "Ana", City: "RIO"},
			"000201" + "26180014br.gov.bcb.pix" + "52040000" + "5303986" + "5802BR" + "5903Ana" + "6003RIO" + "62070503***" +
				"80740014br.gov.bcb.pix2552" + recurrenceURL,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.code.Encode()
			require.NoError(t, err)
			assert.Equal(t, withChecksum(tc.want), got)
			back, err := pix.Decode(got)
			require.NoError(t, err)
			assert.Equal(t, tc.code, members(back))
		})
	}
}

// A change of one member leaves the rest of a code, also what Code does not name.
func TestADecodedCodeIsChanged(t *testing.T) {
	t.Parallel()
	c, err := pix.Decode(everyFieldSample)
	require.NoError(t, err)
	c.Amount, c.TxID = 200, ""
	got, err := c.Encode()
	require.NoError(t, err)
	assert.Equal(t, strings.NewReplacer("5406123.45", "54042.00", "62190515RP12345678-2019", "62070503***").Replace(
		everyFieldSample[:len(everyFieldSample)-8]), got[:len(got)-8])
	c.Amount, c.Once = 0, true
	got, err = c.Encode()
	require.NoError(t, err)
	assert.Contains(t, got, "000201"+"010212"+"0414")
	assert.NotContains(t, got, "986"+"54")

	c, err = pix.Decode(withChecksum("00020126180014br.gov.bcb.pix5802BR5903Ana6003RIO80740014br.gov.bcb.pix2552" + recurrenceURL))
	require.NoError(t, err)
	c.RecurrenceURL, c.URL = "", chargeURL
	got, err = c.Encode()
	require.NoError(t, err)
	assert.Equal(t, "00020126730014br.gov.bcb.pix2551"+chargeURL+"5802BR5903Ana6003RIO", got[:len(got)-8])
}

// Every change of one character, and every cut, is noticed.
func TestADamagedCodeIsRejected(t *testing.T) {
	t.Parallel()
	for i := range dynamicSample {
		damaged := []byte(dynamicSample)
		damaged[i] ^= 1
		if i >= len(dynamicSample)-4 && strings.EqualFold(string(damaged), dynamicSample) {
			continue
		}
		_, err := pix.Decode(string(damaged))
		require.Error(t, err, string(damaged))
		_, err = pix.Decode(dynamicSample[:i])
		require.Error(t, err, dynamicSample[:i])
	}
	_, err := pix.Decode(strings.Replace(dynamicSample, "Fulano", "Sicrano", 1))
	require.ErrorIs(t, err, pix.ErrChecksum)
	_, err = pix.Decode(dynamicSample[:len(dynamicSample)-4] + "64e4")
	require.NoError(t, err, "hexadecimal digits in lower case")
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"": "no BR Code",
		"https://pix.example.com/v2/8b3da2f39a4140d1a91abd93113bd441":            "no BR Code",
		withChecksum("000201" + "2699"):                                          "field 26: the code ends before its 99 characters",
		withChecksum("000201" + "26xx"):                                          "at byte 6: expected the id and the length",
		withChecksum("000201000201"):                                             "field 00: occurs twice",
		withChecksum("000201" + "26110014br.gov."):                               "field 26: field 00: the code ends",
		withChecksum("000201" + "26140010BR.COM.ABC" + "5903Ana"):                "belongs to another scheme",
		withChecksum("000201" + "26270014br.gov.bcb.pix0105a@b.c" + "54041,00"):  `field 54 "1,00": must be an amount in reais`,
		withChecksum("000201" + "26270014br.gov.bcb.pix0105a@b.c" + "54051.000"): `field 54 "1.000": must be`,
		withChecksum("000201" + "26270014br.gov.bcb.pix0105a@b.c" + "6203059"):   "field 62: at byte",
		withChecksum("000201" + "26270014br.gov.bcb.pix0105a@b.c" + "62040599"):  "field 62: field 05: the code ends",
	} {
		_, err := pix.Decode(code)
		require.ErrorContains(t, err, want, code)
	}
}

func TestAmountsInReais(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]int64{"10": 1000, "10.": 1000, "10.5": 1050, "0.00": 0, "0.01": 1, "9999999999.99": 999_999_999_999} {
		code := withChecksum("00020126270014br.gov.bcb.pix0105a@b.c" + fmt.Sprintf("54%02d%s", len(amount), amount) + "5903Ana6003RIO")
		c, err := pix.Decode(code)
		require.NoError(t, err, amount)
		assert.Equal(t, want, c.Amount, amount)
		encoded, err := c.Encode()
		require.NoError(t, err)
		assert.Equal(t, code, encoded, "the spelling of an amount is kept")
	}
}

// Some writers count the characters of a name with accents, others its bytes.
func TestNamesWithAccents(t *testing.T) {
	t.Parallel()
	for _, length := range []string{"04", "05"} {
		c, err := pix.Decode(withChecksum("00020126270014br.gov.bcb.pix0105a@b.c59" + length + "José6003RIO"))
		require.NoError(t, err)
		assert.Equal(t, "José", c.Name)
		assert.Equal(t, "RIO", c.City)
	}
}

func TestEncodeErrors(t *testing.T) {
	t.Parallel()
	valid := pix.Code{URL: chargeURL, Name: "Ana", City: "RIO"}
	_, err := valid.Encode()
	require.NoError(t, err)
	for want, change := range map[string]func(*pix.Code){
		"Code.Key: a code needs a Key, a URL or a RecurrenceURL": func(c *pix.Code) { c.URL = "" },
		"Code.Key: must be empty in a code with a URL":           func(c *pix.Code) { c.Key = "a@b.c" },
		"Code.URL: must not contain the scheme":                  func(c *pix.Code) { c.URL = "https://" + chargeURL },
		"Code.RecurrenceURL: must not contain the scheme":        func(c *pix.Code) { c.RecurrenceURL = "https://" + recurrenceURL },
		"Code.Amount: must not be negative":                      func(c *pix.Code) { c.Amount = -1 },
		"Code.TxID: must have 1 to 25 letters and digits":        func(c *pix.Code) { c.TxID = "order-17" },
		"Code.Name: must have 1 to 25 characters":                func(c *pix.Code) { c.Name = strings.Repeat("a", 26) },
		"Code.City: must have 1 to 15 characters":                func(c *pix.Code) { c.City = "" },
		"field 25 has 100 characters: at most 99 fit":            func(c *pix.Code) { c.URL = strings.Repeat("a", 100) },
		"field 26 has 117 characters: at most 99 fit":            func(c *pix.Code) { c.URL = strings.Repeat("a", 95) },
	} {
		c := valid
		change(&c)
		_, err := c.Encode()
		require.ErrorContains(t, err, want)
	}
}

// What is decoded is encoded to the same bytes, and reading is never a panic.
func FuzzDecode(f *testing.F) {
	for _, sample := range []string{staticSample, dynamicSample, everyFieldSample} {
		f.Add(sample[:len(sample)-8])
	}
	f.Add("00020126270014br.gov.bcb.pix0105a@b.c5905José6003RIO")
	f.Add("00020126180014br.gov.bcb.pix5802BR5903Ana6003RIO80740014br.gov.bcb.pix2552" + recurrenceURL)
	f.Add("001200000000000027580014BR.GOV.BCB.PIX011100000000000020400000707000000008020059170000000000000000060010803900120000000000000119000000000000000ĺ00")                                           // counts bytes
	f.Add("00020001140000000000000028580014BR.GOV.BCB.PIX0136000000000000000000000000000000000000023000000000000000000000000000000010040000070300008060000001102005917000000000000000006008000000006100") // empty fields
	f.Fuzz(func(t *testing.T, body string) {
		code := withChecksum(body)
		c, err := pix.Decode(code)
		if err != nil {
			return
		}
		encoded, err := c.Encode()
		if err != nil {
			return // a member breaks a rule for writers
		}
		if len(code) == len([]rune(code)) { // otherwise bytes and characters may have been counted
			assert.Equal(t, code, encoded)
		}
		back, err := pix.Decode(encoded)
		require.NoError(t, err)
		assert.Equal(t, members(c), members(back))
	})
}
