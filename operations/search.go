package operations

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/doubt"
)

// search is how far a list, newest first, has been read for the resource of a
// request whose response was lost. It is stored, so that another worker continues
// a search that takes longer than a lease.
type search struct {
	Cursor string    `json:"cursor,omitzero"` // of the next page; "" for the first one
	Pages  int       `json:"pages"`           // read so far
	Wide   bool      `json:"wide,omitzero"`   // everything since the request, not only the time around it
	Newest time.Time `json:"newest,omitzero"` // when the first item of the list was created
	Oldest time.Time `json:"oldest,omitzero"` // when the last item read was created
}

var (
	// errSearching means that the search goes on in the next attempt.
	errSearching = errors.New("operations: the search of the list is not finished")
	// errSearchLimit means that the search read Config.MaxSearchPages pages.
	errSearchLimit = errors.New("operations: the list is too long to be searched")
)

func (s *search) String() string {
	text := fmt.Sprintf("the list was searched over %d pages", s.Pages)
	if !s.Oldest.IsZero() {
		text += ", back to " + s.Oldest.UTC().Format(time.RFC3339)
	}
	return text
}

// searchList reads a list from where the search is until visit returns true or the
// list ends. It returns errSearching after half of the lease, so that another attempt
// continues. Each page is retried by the client.
func searchList[T any](
	ctx context.Context, s *session, pages func(ctx context.Context, cursor string) iter.Seq2[*gateway.Page[T], error],
	visit func(*T) (stop bool, err error),
) error {
	ctx, cancel := context.WithDeadline(ctx, s.searchUntil)
	defer cancel()
	first := s.search.Pages
	for page, err := range pages(ctx, s.search.Cursor) {
		switch {
		case err != nil && s.search.Pages > first && !time.Now().Before(s.searchUntil):
			return errSearching
		case err != nil:
			s.restart(err)
			return err
		}
		for i := range page.Items {
			if stop, err := visit(&page.Items[i]); stop || err != nil {
				return err
			}
		}
		s.search.Pages++
		if !page.HasMore() {
			return nil
		}
		s.search.Cursor = page.NextCursor
		switch {
		case s.search.Pages >= s.maxPages:
			return errSearchLimit
		case !time.Now().Before(s.searchUntil):
			return errSearching
		}
	}
	return nil
}

// restart begins again on the first page if the gateway rejects the cursor, which
// may have expired. The pages still count, so this ends too.
func (s *session) restart(err error) {
	if s.search.Cursor != "" && rejectionOf(err) != nil {
		s.search.Cursor, s.search.Newest = "", time.Time{}
	}
}

// tooOld reports whether an item of a list, newest first, was created long
// before the request in doubt was sent. Ages are relative to the newest item,
// so that the gateway's clock and this one need not agree.
func (s *session) tooOld(created time.Time) bool {
	if s.search.Newest.IsZero() {
		s.search.Newest = created
	}
	s.search.Oldest = created
	return doubt.TooOld(s.search.Newest, created, time.Since(s.since))
}
