module github.com/gateway-go/gateway/contrib/mcp

go 1.26.0

replace github.com/gateway-go/gateway => ../../
