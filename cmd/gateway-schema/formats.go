package main

import (
	"fmt"

	"github.com/gateway-go/gateway/database"
)

// format makes the file of a migration for a tool. A file is applied as a whole or not at all,
// unless it is concurrent.
type format func(d database.Dialect, number int, m database.Migration) file

// formatOf returns a format, or nil.
func formatOf(name string) format {
	switch name {
	case "goose":
		return goose
	case "migrate":
		return migrate
	case "atlas":
		return atlas
	case "plain":
		return plain
	default:
		return nil
	}
}

// goose runs a file in a transaction, unless it says otherwise.
func goose(_ database.Dialect, number int, m database.Migration) file {
	head := "-- +goose Up\n"
	if m.Concurrent {
		head = "-- +goose NO TRANSACTION\n" + head
	}
	return file{fmt.Sprintf("%05d_gateway_%s.sql", number, m.Part), head + m.SQL}
}

// migrate is golang-migrate. It sends a file to PostgreSQL as one query with several
// statements, which PostgreSQL runs in a transaction.
func migrate(_ database.Dialect, number int, m database.Migration) file {
	head := ""
	if m.Concurrent {
		head = "-- Not in a transaction: golang-migrate needs x-multi-statement=true in the address of the database.\n"
	}
	return file{fmt.Sprintf("%06d_gateway_%s.up.sql", number, m.Part), head + m.SQL}
}

// atlas runs a file in a transaction, unless its first line says otherwise. An empty line
// ends what is for Atlas.
func atlas(_ database.Dialect, number int, m database.Migration) file {
	head := ""
	if m.Concurrent {
		head = "-- atlas:txmode none\n\n"
	}
	return file{fmt.Sprintf("%04d_gateway_%s.sql", number, m.Part), head + m.SQL}
}

// plain is for psql and sqlite3, which run each statement by itself, and go on after one that
// failed.
func plain(d database.Dialect, number int, m database.Migration) file {
	text := "-- psql -v ON_ERROR_STOP=1 -f FILE\n"
	if d == database.DialectSQLite { // without -bail, the COMMIT after an error would commit a part
		text = "-- sqlite3 -bail DATABASE <FILE\n"
	}
	switch {
	case m.Concurrent:
		text += m.SQL
	case d == database.DialectSQLite:
		text += "BEGIN IMMEDIATE;\n" + m.SQL + "COMMIT;\n"
	default:
		text += "BEGIN;\n" + m.SQL + "COMMIT;\n"
	}
	return file{fmt.Sprintf("%04d_%s.sql", number, m.Part), text}
}
