// Command gateway-schema writes the migrations of the tables of packages operations,
// webhook/sqlstore and merchant as files for your own tool for migrations. The packages then
// open the database with [database.Expect] and need no right to create tables.
//
//	go run github.com/gateway-go/gateway/cmd/gateway-schema -dialect postgres -format goose -dir migrations
//
// -dialect is required. Formats: goose, migrate (golang-migrate), atlas, and plain for psql -f
// and sqlite3. Without -dir the files are printed. After an upgrade of the module, write only
// what is newer than the latest of your files:
//
//	gateway-schema -dialect postgres -format goose -dir migrations -after 4
//
// The numbers of the files are the versions of the schema. If your own migrations have numbers
// too, -number is that of the first file; with timestamps, as Atlas has them, it is one:
// -number 20260131120000.
//
// -schema is the schema of the tables on PostgreSQL, as Location.InSchema; without it, they are
// created in the first schema of the search path. -parts leaves out packages that you don't use.
//
// A file that exists is not overwritten. There are no migrations down: the tables are the
// record of money that moved.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/database"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// The exit codes.
const (
	done    = 0
	failed  = 1 // a file can't be written
	misused = 2 // the flags are wrong
)

// run is main with its environment as arguments. It returns the exit code.
func run(args []string, out, errs io.Writer) int {
	o, err := parse(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return done
	case errors.Is(err, errPrinted):
		return misused
	case err != nil:
		_, _ = fmt.Fprintln(errs, "gateway-schema:", err)
		return misused
	}
	files, err := o.files()
	if err != nil {
		_, _ = fmt.Fprintln(errs, "gateway-schema:", err)
		return misused
	}
	if len(files) == 0 {
		_, _ = fmt.Fprintf(errs, "gateway-schema: there is no migration after version %d of the parts %s\n",
			o.after, strings.Join(o.parts, ","))
		return done
	}
	if o.dir == "" {
		for _, f := range files {
			_, _ = fmt.Fprintf(out, "-- %s\n%s", f.name, f.text)
		}
		return done
	}
	if err := write(o.dir, files, out); err != nil {
		_, _ = fmt.Fprintln(errs, "gateway-schema:", err)
		return failed
	}
	return done
}

// options are the flags.
type options struct {
	dialect database.Dialect
	format  string
	after   int
	dir     string
	schema  string
	parts   []string
	number  int // 0: the version
}

// allParts are the parts of the schema, separated by commas.
const allParts = database.PartAccounts + "," + database.PartOperations + "," + database.PartEvents + "," +
	database.PartMerchant

// errPrinted is an error that package flag has printed.
var errPrinted = errors.New("the flags are wrong")

// parse reads the flags.
func parse(args []string, errs io.Writer) (o options, err error) {
	set := flag.NewFlagSet("gateway-schema", flag.ContinueOnError)
	set.SetOutput(errs)
	dialect := set.String("dialect", "", "the database: postgres or sqlite")
	parts := set.String("parts", allParts,
		"the parts that you use, separated by commas; every package needs accounts")
	set.StringVar(&o.format, "format", "plain", "the format of the files: goose, migrate, atlas or plain")
	set.IntVar(&o.after, "after", 0, "write only migrations after this version of the schema")
	set.StringVar(&o.dir, "dir", "", "the folder of the files; without it they are printed")
	set.StringVar(&o.schema, "schema", "",
		"the schema of the tables on PostgreSQL; without it, the first one of the search path")
	set.IntVar(&o.number, "number", 0, "the number of the first file; without it, the version of the schema")
	if err := set.Parse(args); err != nil {
		return o, errors.Join(errPrinted, err)
	}
	given := make(map[string]bool)
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	o.parts = strings.Split(*parts, ",")
	for i := range o.parts {
		o.parts[i] = strings.TrimSpace(o.parts[i])
	}
	switch *dialect {
	case "postgres":
		o.dialect = database.DialectPostgres
	case "sqlite":
		o.dialect = database.DialectSQLite
	default:
		return o, fmt.Errorf("-dialect must be postgres or sqlite, not %q", *dialect)
	}
	const longest = 63 // PostgreSQL shortens longer names
	switch {
	case set.NArg() > 0:
		return o, fmt.Errorf("%q is no flag: the command takes only flags", set.Arg(0))
	case formatOf(o.format) == nil:
		return o, fmt.Errorf("-format must be goose, migrate, atlas or plain, not %q", o.format)
	case o.after < 0:
		return o, fmt.Errorf("-after must be 0 or a version of the schema, not %d", o.after)
	case given["number"] && o.number < 1:
		return o, fmt.Errorf("-number must be 1 or more, not %d", o.number)
	case given["dir"] && o.dir == "":
		return o, errors.New("-dir must name a folder; leave it out to print the files")
	case given["schema"] && o.dialect == database.DialectSQLite:
		return o, errors.New("-schema is only for -dialect postgres: SQLite has no schemas")
	case given["schema"] && o.schema == "":
		return o, errors.New("-schema must name a schema; leave it out for the first one of the search path")
	case len(o.schema) > longest:
		return o, fmt.Errorf("-schema must have at most %d bytes", longest)
	}
	for _, part := range o.parts {
		if !slices.Contains(strings.Split(allParts, ","), part) {
			return o, fmt.Errorf("-parts must be some of %s, not %q", allParts, part)
		}
	}
	if !slices.Contains(o.parts, database.PartAccounts) {
		return o, errors.New("-parts must include accounts, which every package needs")
	}
	return o, nil
}

// file is a file with one migration.
type file struct{ name, text string }

// files returns those that the flags ask for.
func (o options) files() ([]file, error) {
	all, err := database.Schema(o.dialect, o.schema)
	if err != nil {
		return nil, fmt.Errorf("-schema: %w", err)
	}
	if last := all[len(all)-1].Version; o.after > last {
		return nil, fmt.Errorf("-after must be at most %d, the last version of the schema, not %d", last, o.after)
	}
	var files []file
	number := o.number
	for _, m := range all {
		if m.Version <= o.after || !slices.Contains(o.parts, m.Part) {
			continue
		}
		if o.number == 0 {
			number = m.Version
		}
		files = append(files, formatOf(o.format)(o.dialect, number, m))
		number++
	}
	return files, nil
}

// write writes the files, or none if one of them exists and differs.
func write(dir string, files []file, out io.Writer) error {
	var missing []file
	for _, f := range files {
		switch there, err := os.ReadFile(filepath.Join(dir, f.name)); { //nolint:gosec // the user's folder
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, f)
		case err != nil:
			return err
		case string(there) != f.text:
			return fmt.Errorf("%s exists and differs, and nothing was written: a migration that was applied must not change; "+
				"for later ones use -after, for a schema of another name another -dir", filepath.Join(dir, f.name))
		}
	}
	const folder, readable = 0o755, 0o644
	if err := os.MkdirAll(dir, folder); err != nil {
		return err
	}
	for _, f := range missing {
		path := filepath.Join(dir, f.name)
		created, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, readable) //nolint:gosec // the user's folder
		if err != nil {
			return err
		}
		_, err = io.WriteString(created, f.text)
		if err := errors.Join(err, created.Close()); err != nil {
			return errors.Join(err, os.Remove(path))
		}
		_, _ = fmt.Fprintln(out, path)
	}
	if len(missing) < len(files) {
		_, _ = fmt.Fprintf(out, "%d files exist already, and are the same\n", len(files)-len(missing))
	}
	return nil
}
