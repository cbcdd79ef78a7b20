// Package artefact makes what the gateway hands out beside its records: Pix
// copy-paste texts, boletos, ids and codes. They have the real forms and right
// check digits, so that a merchant's own checks pass on them, and they can't be
// paid: the Pix payload host is under .invalid and the boleto's bank is 999.
package artefact
