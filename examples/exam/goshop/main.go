// Command goshop is a small merchant that sits the exam; see ../README.md.
//
//	mockgateway exam -- go run ./examples/exam/goshop
//	mockgateway exam -- go run ./examples/exam/goshop --mistake no_dedup
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/exam/goshop/shop"
)

func main() {
	if err := run(os.Args[1:], os.Getenv); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "goshop:", err)
		}
		os.Exit(2)
	}
}

func run(args []string, getenv func(string) string) error {
	flags := flag.NewFlagSet("goshop", flag.ContinueOnError)
	mistake := flags.String("mistake", getenv("EXAM_MISTAKE"), "the mistake to make; the default is EXAM_MISTAKE")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	for _, name := range []string{"PORT", "GATEWAY_BASE_URL", "GATEWAY_API_KEY", "GATEWAY_WEBHOOK_SECRET", "EXAM_DATA_DIR"} {
		if getenv(name) == "" {
			return fmt.Errorf("%s is not set", name)
		}
	}
	port, err := strconv.ParseUint(getenv("PORT"), 10, 16)
	if err != nil {
		return fmt.Errorf("PORT is %q, which is not a port", getenv("PORT"))
	}
	client, err := gateway.New(getenv("GATEWAY_BASE_URL"), gateway.BearerToken(getenv("GATEWAY_API_KEY")), shop.ClientOptions()...)
	if err != nil {
		return err
	}
	store, err := shop.OpenFile(filepath.Join(getenv("EXAM_DATA_DIR"), "shop.jsonl"))
	if err != nil {
		return err
	}
	s, err := shop.New(store, client, gateway.NewSecret(getenv("GATEWAY_WEBHOOK_SECRET")), shop.Mistake(*mistake))
	if err != nil {
		return err
	}
	hooks := getenv("EXAM") == "1"
	if !hooks { // in an exam, the hook runs the jobs
		go jobs(s)
	}
	server := &http.Server{
		Addr: fmt.Sprintf("127.0.0.1:%d", port), Handler: s.Handler(hooks), ReadHeaderTimeout: 10 * time.Second,
	}
	return server.ListenAndServe()
}

func jobs(s *shop.Shop) {
	for {
		time.Sleep(5 * time.Minute)
		if err := s.Tick(context.Background(), time.Now()); err != nil {
			fmt.Fprintln(os.Stderr, "goshop:", err)
		}
	}
}
