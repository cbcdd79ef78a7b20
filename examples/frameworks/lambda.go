package frameworks

import (
	"context"
	"encoding/base64"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/gateway-go/gateway/webhook"
)

// LambdaFunction is a function behind an API Gateway HTTP API or a function
// URL.
type LambdaFunction func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

// Lambda returns the receiver as a cloud function, for lambda.Start. Instances
// share no memory and are frozen between requests. So give the receiver a Store
// in a database, and let it handle events before it responds: that is Sync
// mode. Or receive in Inbox mode with Workers -1, and have a
// long-running process handle the events from the same store.
func Lambda(rx *webhook.Receiver) LambdaFunction {
	return func(ctx context.Context, r events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		body, ok := bodyOf(r)
		if !ok {
			return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusBadRequest}, nil
		}
		header := make(http.Header, len(r.Headers))
		for name, value := range r.Headers { // lower-case names, one value each
			header.Set(name, value)
		}
		response := rx.Receive(ctx, webhook.Delivery{Path: r.RawPath, Header: header, Body: body})
		return respond(response), nil // an error would become a 502, and the code would be lost
	}
}

// bodyOf returns the bytes that arrived. The API encodes bodies as base64
// unless it recognizes them as text.
func bodyOf(r events.APIGatewayV2HTTPRequest) (body []byte, ok bool) {
	if !r.IsBase64Encoded {
		return []byte(r.Body), true
	}
	body, err := base64.StdEncoding.DecodeString(r.Body)
	return body, err == nil
}

func respond(response webhook.Response) events.APIGatewayV2HTTPResponse {
	headers := make(map[string]string)
	for name, values := range response.Header() {
		headers[name] = values[0]
	}
	return events.APIGatewayV2HTTPResponse{StatusCode: response.Status, Headers: headers, Body: string(response.Body)}
}
