package webhook

import (
	"context"
	"errors"

	"github.com/gateway-go/gateway"
)

// clientAPI reads resources with the merchant's client.
type clientAPI struct{ client *gateway.Client }

// read makes one attempt: the sender of the delivery is the one that retries.
func (a clientAPI) read(ctx context.Context, family Family, id string) (*resource, error) {
	r, err := a.get(ctx, family, id)
	switch {
	case errors.Is(err, gateway.ErrNotFound), errors.Is(err, gateway.ErrValidation):
		return nil, errUnknownResource // the id is the sender's: one that can't be an id is unknown too
	case err != nil:
		return nil, err
	case r.head().id != id:
		// An API that reads ids leniently would give one resource many names,
		// and one event many identities.
		return nil, errUnknownResource
	default:
		return r, nil
	}
}

func (a clientAPI) get(ctx context.Context, family Family, id string) (r *resource, err error) {
	r = &resource{}
	switch family {
	case FamilyTransaction:
		r.transaction, err = a.client.Transactions.Get(ctx, id, gateway.NoRetry())
	case FamilySubscription:
		r.subscription, err = a.client.Subscriptions.Get(ctx, id, gateway.NoRetry())
	default:
		r.transfer, err = a.client.Transfers.Get(ctx, id, gateway.NoRetry())
	}
	return r, err
}
