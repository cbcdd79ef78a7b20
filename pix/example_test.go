package pix_test

import (
	"fmt"
	"strings"

	"github.com/gateway-go/gateway/pix"
)

// Check what a code says before you show it, and draw it.
func Example() {
	code := "00020101021226700014br.gov.bcb.pix2548pix.example.com/8b3da2f39a4140d1a91abd93113bd441" +
		"5204000053039865802BR5913Fulano de Tal6008BRASILIA62070503***630464E4"

	content, err := pix.Decode(code)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(content.Name, content.URL)
	picture, err := pix.Draw(code)
	if err != nil {
		fmt.Println(err)
		return
	}
	svg := picture.SVG() // for a page
	fmt.Println(strings.HasPrefix(svg, "<svg"))
	png, err := picture.PNG(8) // for an e-mail, 8 pixels per module
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(png) > 0)

	// Output:
	// Fulano de Tal pix.example.com/8b3da2f39a4140d1a91abd93113bd441
	// true
	// true
}

// A static code, for a printed sign: the payer enters the amount if it has none.
func ExampleCode_Encode() {
	code, err := (&pix.Code{Key: "ana@example.com", Name: "Ana Souza", City: "RIO DE JANEIRO", TxID: "stall7"}).Encode()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(code)

	// Output:
	// 00020126370014br.gov.bcb.pix0115ana@example.com5204000053039865802BR5909Ana Souza6014RIO DE JANEIRO62100506stall76304BB58
}

// The code of a Pix Automatico authorizes a recurrence. With a charge, it also
// pays the first period.
func ExampleDecode_recurrence() {
	code := &pix.Code{RecurrenceURL: "pix.example.com/rec/2353c790eefb11eaadc10242ac120002", Name: "Ana Souza", City: "RIO DE JANEIRO"}
	text, err := code.Encode()
	if err != nil {
		fmt.Println(err)
		return
	}
	content, err := pix.Decode(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("recurring:", content.RecurrenceURL != "", "pays now:", content.URL != "")
	_, err = pix.Decode(strings.Replace(text, "Ana", "Eva", 1))
	fmt.Println(err)

	// Output:
	// recurring: true pays now: false
	// pix: the checksum does not match the code
}
