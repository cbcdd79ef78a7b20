// Package legacy speaks the gateway's v1 surface: the webhook integration, the
// account's balance and the first Pix payment. It also holds the two calls of
// the retired card tokenization. Accounts that were made for v2 need nothing of
// it but the balance.
//
// Its names are those of the v1 contract, which differ from v2's: camelCase
// members, payment states in capitals.
package legacy
